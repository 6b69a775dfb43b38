import { firstNonSpace, inspectJson, isJsonSpace } from "./json-validation.js";

export { MAX_JSON_DEPTH } from "./json-validation.js";

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

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Frames the body of an append or create (protocol: JSON streams). One level of array is flattened, everything else is
 * one message. A message keeps its bytes, but white space around it goes and line breaks inside become spaces.
 */
export function frameJson(body: Buffer): JsonFrame {
  const shape = inspectJson(body);
  switch (shape.kind) {
    case "invalid":
      return shape;
    case "array":
      return frameElements(body, shape.maxElements);
    case "value":
      return { kind: "framed", bytes: frameValue(body), messages: 1 };
  }
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

function frameValue(body: Buffer): Buffer {
  const start = firstNonSpace(body);
  const end = lastNonSpace(body) + 1;
  const bytes = Buffer.allocUnsafe(end - start + 2);
  body.copy(bytes, 0, start, end);
  if (body.includes(NEWLINE) || body.includes(CARRIAGE_RETURN)) spaceLineBreaks(bytes);
  bytes[end - start] = COMMA;
  bytes[end - start + 1] = NEWLINE;
  return bytes;
}

function spaceLineBreaks(bytes: Buffer): void {
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === NEWLINE || bytes[at] === CARRIAGE_RETURN) bytes[at] = SPACE;
  }
}

function frameElements(body: Buffer, maxElements: number): JsonFrame {
  const start = firstNonSpace(body) + 1;
  const end = lastNonSpace(body);
  // Each comma becomes two bytes, and two come at the end.
  const room = Buffer.allocUnsafe(end - start + maxElements + 1);
  const { length, messages } = copyElements(body, start, end, room);
  if (messages === 0) return EMPTY_ARRAY;
  // White space that went leaves room at the end; a view would keep it for as long as the messages are cached.
  const bytes = length === room.length ? room : Buffer.from(room.subarray(0, length));
  return { kind: "framed", bytes, messages };
}

/** Copies the elements of a valid array, whose inside is `body` from `start` to `end`, as stored messages. */
function copyElements(body: Buffer, start: number, end: number, out: Buffer): { length: number; messages: number } {
  let length = 0;
  let messages = 0;
  let depth = 0;
  let inString = false;
  for (let at = start; at < end; at++) {
    const byte = body[at] ?? 0;
    if (inString) {
      out[length++] = byte;
      if (byte === BACKSLASH) out[length++] = body[++at] ?? 0;
      else if (byte === QUOTE) inString = false;
    } else if (isJsonSpace(byte)) {
      if (depth > 0) out[length++] = byte === NEWLINE || byte === CARRIAGE_RETURN ? SPACE : byte;
    } else {
      out[length++] = byte;
      if (byte === QUOTE) inString = true;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
      else if (byte === COMMA && depth === 0) {
        out[length++] = NEWLINE;
        messages++;
      }
    }
  }
  if (length === 0) return { length, messages };
  out[length++] = COMMA;
  out[length++] = NEWLINE;
  return { length, messages: messages + 1 };
}

function lastNonSpace(body: Buffer): number {
  let at = body.length - 1;
  while (at >= 0 && isJsonSpace(body[at])) at--;
  return at;
}
