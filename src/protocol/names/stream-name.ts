// Decodes and checks the names of streams.

import { isUtf8 } from "node:buffer";

/** Longest stream name, in bytes of UTF-8 after percent-decoding (protocol: Names). */
export const MAX_NAME_BYTES = 1024;

/** A decoded stream name, or a sentence that says what is wrong with it. */
export type NameResult = { readonly name: string } | { readonly fault: string };

const RESERVED_SEGMENT = "__ds";

const EMPTY: NameResult = { fault: "The stream name is empty." };
const TOO_LONG: NameResult = { fault: `The stream name is longer than ${MAX_NAME_BYTES} bytes.` };
const BAD_PERCENT: NameResult = { fault: "The stream name has an invalid percent-encoding." };
const BAD_UTF8: NameResult = { fault: "The stream name is not valid UTF-8." };
const CONTROL: NameResult = { fault: "The stream name has a control character." };
const BAD_SEGMENT: NameResult = { fault: "The stream name has an empty, '.' or '..' segment." };
const RESERVED: NameResult = { fault: `Stream names that begin with the segment ${RESERVED_SEGMENT} are reserved.` };

const PERCENT = 0x25;
const DOT = 0x2e;

/**
 * Decodes the URL path after the prefix, without the query, to a stream's name of 1 to {@link MAX_NAME_BYTES} bytes
 * (docs/api.md, Concepts). Percent-encoded and raw spellings give one name: `a%2Fb` is `a/b`. Characters beyond ASCII
 * are taken as the raw bytes that node:http makes of them (latin1).
 */
export function decodeName(encodedPath: string): NameResult {
  return isPlainAscii(encodedPath) ? checkName(encodedPath, encodedPath.length) : decodeBytes(encodedPath);
}

/** Checks a stream's name that is not encoded, like one in JSON. */
export function checkedName(name: string): NameResult {
  // A lone surrogate has no UTF-8: Buffer would put another character in its place.
  if (/\p{Surrogate}/u.test(name)) return BAD_UTF8;
  return hasControl(name) ? CONTROL : checkName(name, Buffer.byteLength(name));
}

/** Whether a path is printable ASCII without `%`: then it is the name itself, and has no control character. */
function isPlainAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e || code === PERCENT) return false;
  }
  return true;
}

function decodeBytes(encodedPath: string): NameResult {
  // No byte takes more than three characters, so a longer path need not be decoded.
  if (encodedPath.length > 3 * MAX_NAME_BYTES) return TOO_LONG;
  const bytes = percentDecode(encodedPath);
  if (bytes === null) return BAD_PERCENT;
  if (!isUtf8(bytes)) return BAD_UTF8;
  const name = bytes.toString();
  return hasControl(name) ? CONTROL : checkName(name, bytes.length);
}

function percentDecode(text: string): Buffer | null {
  const bytes = Buffer.allocUnsafe(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    let byte = text.charCodeAt(at);
    if (byte === PERCENT) {
      byte = (hexValue(text.charCodeAt(at + 1)) << 4) | hexValue(text.charCodeAt(at + 2));
      at += 2;
    }
    // Negative: not two hexadecimal digits. Above 255: a character that stands for no byte.
    if (byte < 0 || byte > 0xff) return null;
    bytes[length++] = byte;
  }
  return bytes.subarray(0, length);
}

/** The value of a hexadecimal digit; -1 for any other character, and for the NaN past the end of a string. */
function hexValue(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** C0, DEL and C1: the characters that Unicode calls control characters. */
function hasControl(name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return true;
  }
  return false;
}

function checkName(name: string, byteLength: number): NameResult {
  if (byteLength === 0) return EMPTY;
  if (byteLength > MAX_NAME_BYTES) return TOO_LONG;
  let start = 0;
  for (;;) {
    const slash = name.indexOf("/", start);
    const end = slash === -1 ? name.length : slash;
    if (isEmptyOrDots(name, start, end)) return BAD_SEGMENT;
    if (start === 0 && end === RESERVED_SEGMENT.length && name.startsWith(RESERVED_SEGMENT)) return RESERVED;
    if (slash === -1) return { name };
    start = slash + 1;
  }
}

function isEmptyOrDots(name: string, start: number, end: number): boolean {
  if (end - start > 2) return false;
  for (let at = start; at < end; at++) if (name.charCodeAt(at) !== DOT) return false;
  return true;
}
