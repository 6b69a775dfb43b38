import { isUtf8 } from "node:buffer";
import { BodyBlocks } from "./body-blocks.js";
import { framedRoom, JsonScanner, MAX_JSON_DEPTH, type JsonFault } from "./json-scanner.js";
import { Utf8Check } from "./utf8.js";

export { MAX_JSON_DEPTH } from "./json-scanner.js";

/**
 * A JSON body as a stream stores it: `bytes` holds its messages, each on one line and followed by `,\n`, so that a read
 * is `[`, a range without its last two bytes, and `]`. An empty array has no message; `detail` is a sentence for people.
 */
export type JsonFrame =
  | { readonly kind: "framed"; readonly bytes: Buffer; readonly messages: number }
  | { readonly kind: "empty-array" }
  | { readonly kind: "invalid"; readonly detail: string };

/** What a read answers where there is no message. Not to be written to. */
export const EMPTY_JSON_ARRAY: Buffer = Buffer.from("[]");

const EMPTY_ARRAY: JsonFrame = { kind: "empty-array" };
const NOT_UTF8: JsonFrame = { kind: "invalid", detail: "The body is not valid UTF-8." };
const INVALID: Readonly<Record<JsonFault, JsonFrame>> = {
  "not-json": { kind: "invalid", detail: "The body is not valid JSON." },
  "byte-order-mark": { kind: "invalid", detail: "The body begins with a byte order mark, which JSON does not allow." },
  "too-deep": { kind: "invalid", detail: `A JSON message is nested deeper than ${MAX_JSON_DEPTH} levels.` },
};

const NEWLINE = 0x0a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** What stands behind the last message. */
const LAST_END = Buffer.from(",\n");

/** So much is scanned at a time. */
const STEP_BYTES = 16 * 1024;
/** Where what was scanned is written first: nobody keeps it from one call to the next. */
const SCANNED = Buffer.allocUnsafeSlow(framedRoom(STEP_BYTES) + LAST_END.length);
/** For bodies that are there as a whole. */
const SCANNER = new JsonScanner();

/**
 * Frames the body of an append or create (protocol: JSON streams). One level of array is flattened, everything else is
 * one message. A message keeps its bytes, but white space around it goes and line breaks inside become spaces.
 */
export function frameJson(body: Buffer): JsonFrame {
  if (!isUtf8(body)) return NOT_UTF8;
  SCANNER.reset();
  const out = body.length <= STEP_BYTES ? SCANNED : Buffer.allocUnsafeSlow(framedRoom(body.length) + LAST_END.length);
  const length = SCANNER.scan(body, out);
  if (!SCANNER.isWhole) return INVALID[SCANNER.fault ?? "not-json"];
  const { messages } = SCANNER;
  if (messages === 0) return EMPTY_ARRAY;
  // A copy: what is kept for as long as the messages are cached has no room to spare.
  return framed(Buffer.from(out.subarray(0, length + LAST_END.copy(out, length))), messages);
}

/** Frames a body as it comes, in parts of any size: each costs the time of its own bytes, and the end none. */
export class JsonFramer {
  readonly #scanner = new JsonScanner();
  readonly #utf8 = new Utf8Check();
  #isUtf8 = true;
  #blocks = new BodyBlocks();

  /** Takes the next part. */
  add(part: Buffer): void {
    for (let from = 0; from < part.length && this.#isUtf8; from += STEP_BYTES) {
      const step = part.subarray(from, from + STEP_BYTES);
      this.#isUtf8 = this.#utf8.take(step);
      if (!this.#isUtf8 || this.#scanner.fault !== null) continue;
      const length = this.#scanner.scan(step, SCANNED);
      this.#blocks.add(SCANNED.subarray(0, length));
    }
    if (!this.#isUtf8 || this.#scanner.fault !== null) this.#blocks = new BodyBlocks();
  }

  /**
   * What the body is, now that all of it has come: as {@link frameJson} says. What is very large takes some turns of the
   * event loop.
   */
  end(): JsonFrame | Promise<JsonFrame> {
    if (!this.#isUtf8 || !this.#utf8.isWhole) return NOT_UTF8;
    if (!this.#scanner.isWhole) return INVALID[this.#scanner.fault ?? "not-json"];
    const { messages } = this.#scanner;
    if (messages === 0) return EMPTY_ARRAY;
    this.#blocks.add(LAST_END);
    const bytes = this.#blocks.joinInTurns();
    return bytes instanceof Promise ? bytes.then((joined) => framed(joined, messages)) : framed(bytes, messages);
  }
}

function framed(bytes: Buffer, messages: number): JsonFrame {
  return { kind: "framed", bytes, messages };
}

/** The array to serve for stored whole messages. */
export function jsonArrayOf(stored: Buffer): Buffer {
  if (stored.length === 0) return EMPTY_JSON_ARRAY;
  const array = Buffer.allocUnsafe(stored.length);
  array[0] = OPEN_BRACKET;
  stored.copy(array, 1, 0, stored.length - 2);
  array[stored.length - 1] = CLOSE_BRACKET;
  return array;
}

/** How many of the stored bytes are whole messages: up to and with the last newline, 0 if there is none. */
export function wholeMessagesLength(stored: Buffer): number {
  return stored.lastIndexOf(NEWLINE) + 1;
}

/** How many of the first `count` messages are in the stored bytes, and how long those are together. */
export function messagesLength(stored: Buffer, count: number): { readonly length: number; readonly count: number } {
  let length = 0;
  let found = 0;
  while (found < count) {
    const end = stored.indexOf(NEWLINE, length);
    if (end === -1) break;
    length = end + 1;
    found += 1;
  }
  return { length, count: found };
}
