import { isAscii, isUtf8 } from "node:buffer";
import { BodyBlocks } from "./body-blocks.js";
import { framedRoom, JsonScanner, MAX_JSON_DEPTH, type JsonFault } from "./json-scanner.js";
import { countContinuations, Utf8Check } from "../utf8.js";

export { MAX_JSON_DEPTH } from "./json-scanner.js";

/**
 * A JSON body as a stream stores it: `bytes` holds its messages, each on one line and followed by `,\n`, so that a read
 * is `[`, a range without its last two bytes, and `]`. An empty array has no message; `detail` is a sentence for
 * people, `line` and `column` say where it is wrong: both from 1, in line feeds and in characters (code points).
 */
export type JsonFrame =
  | { readonly kind: "framed"; readonly bytes: Buffer; readonly messages: number }
  | { readonly kind: "empty-array" }
  | { readonly kind: "invalid"; readonly detail: string; readonly line: number; readonly column: number };

/** The answer to a read that has no message. Read-only. */
export const EMPTY_JSON_ARRAY: Buffer = Buffer.from("[]");

const EMPTY_ARRAY: JsonFrame = { kind: "empty-array" };
const NEWLINE = 0x0a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** What follows the last message. */
const LAST_END = Buffer.from(",\n");

/** Bytes scanned at a time. */
const STEP_BYTES = 16 * 1024;
/** The first target of scanned bytes, shared by all calls: its contents do not outlive a call. */
const SCANNED = Buffer.allocUnsafeSlow(framedRoom(STEP_BYTES) + LAST_END.length);
/** The scanner for bodies that are in memory as a whole. */
const SCANNER = new JsonScanner();

/**
 * Frames the body of an append or create (protocol: JSON streams). One level of array is flattened, everything else is
 * one message. A message keeps its bytes, but white space around it goes and line breaks inside become spaces.
 */
export function frameJson(body: Buffer): JsonFrame {
  SCANNER.reset();
  if (!isUtf8(body)) return faultOf(body);
  const out = body.length <= STEP_BYTES ? SCANNED : Buffer.allocUnsafeSlow(framedRoom(body.length) + LAST_END.length);
  const length = SCANNER.scan(body, out);
  if (!SCANNER.isWhole) return faultOf(body);
  const { messages } = SCANNER;
  if (messages === 0) return EMPTY_ARRAY;
  // A copy: these bytes are kept while the messages are cached, so they must not hold on to spare memory.
  return framed(Buffer.from(out.subarray(0, length + LAST_END.copy(out, length))), messages);
}

/** What is wrong with a body that is in memory as a whole. */
function faultOf(body: Buffer): JsonFrame {
  const framer = new JsonFramer();
  framer.add(body);
  return framer.fault();
}

/** Frames a body as it arrives, in parts of any size. Each part costs the time of its own bytes; the end nothing. */
export class JsonFramer {
  readonly #scanner = new JsonScanner();
  readonly #utf8 = new Utf8Check();
  /** Bytes of the line, before the part that is scanned next, that begin no character. */
  #continuations = 0;
  #fault: JsonFrame | null = null;
  #blocks = new BodyBlocks();

  /** Takes the next part. */
  add(part: Buffer): void {
    for (let from = 0; from < part.length && this.#fault === null; from += STEP_BYTES) {
      const step = part.subarray(from, from + STEP_BYTES);
      const isText = this.#utf8.take(step);
      const text = isText ? step : step.subarray(0, Math.max(0, this.#utf8.faultAt));
      const length = this.#scanner.scan(text, SCANNED);
      if (!isText || this.#scanner.fault !== null) this.#fail(text, step);
      else {
        this.#blocks.add(SCANNED.subarray(0, length));
        this.#continuations = this.#continuationsIn(text);
      }
    }
  }

  /** Remembers what is wrong where the scanner stopped in `text`, the sound beginning of `step`. */
  #fail(text: Buffer, step: Buffer): void {
    this.#blocks = new BodyBlocks();
    const { fault, line, lineStart, stoppedAt } = this.#scanner;
    const isCut = fault === null && this.#utf8.faultAt < 0;
    // The start of the invalid character was counted with the part before.
    const column = stoppedAt - lineStart - this.#continuationsIn(text.subarray(0, stoppedAt)) + (isCut ? 0 : 1);
    this.#fault = invalid(fault ?? "not-utf8", { line, column, found: step[stoppedAt] ?? null });
  }

  #continuationsIn(text: Buffer): number {
    const { lineStart } = this.#scanner;
    const before = lineStart < 0 ? this.#continuations : 0;
    return isAscii(text) ? before : before + countContinuations(text, Math.max(0, lineStart), text.length);
  }

  /** What is wrong, of a body that is not valid. */
  fault(): JsonFrame {
    if (this.#fault !== null) return this.#fault;
    const { line, lineStart, stoppedAt } = this.#scanner;
    const isCut = !this.#utf8.isWhole;
    const column = stoppedAt - lineStart - this.#continuations + (isCut ? 0 : 1);
    return invalid(isCut ? "not-utf8" : "not-json", { line, column, found: null });
  }

  /**
   * The result for the whole body, once all of it has arrived: that of {@link frameJson}. A very large body takes
   * several turns of the event loop.
   */
  end(): JsonFrame | Promise<JsonFrame> {
    if (this.#fault !== null || !this.#utf8.isWhole || !this.#scanner.isWhole) return this.fault();
    const { messages } = this.#scanner;
    if (messages === 0) return EMPTY_ARRAY;
    this.#blocks.add(LAST_END);
    const bytes = this.#blocks.joinInTurns();
    return bytes instanceof Promise ? bytes.then((joined) => framed(joined, messages)) : framed(bytes, messages);
  }
}

/** Where a text is wrong, and by which byte: `null` where it ends too early. */
interface FaultPlace {
  readonly line: number;
  readonly column: number;
  readonly found: number | null;
}

function invalid(fault: JsonFault | "not-utf8", { line, column: reached, found }: FaultPlace): JsonFrame {
  const column = fault === "byte-order-mark" ? 1 : reached;
  return { kind: "invalid", detail: `${sentenceOf(fault, found)} at line ${line}, column ${column}.`, line, column };
}

function sentenceOf(fault: JsonFault | "not-utf8", found: number | null): string {
  switch (fault) {
    case "not-utf8":
      return "The body is not valid UTF-8";
    case "byte-order-mark":
      return "JSON does not allow the byte order mark";
    case "too-deep":
      return `A JSON message is nested deeper than ${MAX_JSON_DEPTH} levels`;
    case "not-json":
      return found === null
        ? "The body is not valid JSON: it ends"
        : `The body is not valid JSON: unexpected ${characterOf(found)}`;
  }
}

/** A byte in words; one that is not printable ASCII is not shown. */
function characterOf(byte: number): string {
  return byte > 0x20 && byte < 0x7f ? JSON.stringify(String.fromCharCode(byte)) : "character";
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
