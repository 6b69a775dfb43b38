import { parseDigits } from "./decimal.js";

/** What an offset token asks for: the start of the stream, its current tail, or a byte of a segment. */
export type ParsedOffset =
  | { readonly kind: "start" }
  | { readonly kind: "now" }
  | { readonly kind: "at"; readonly segmentStart: number; readonly byteInSegment: number };

const START: ParsedOffset = { kind: "start" };
const NOW: ParsedOffset = { kind: "now" };

const FIELD_DIGITS = 16;
const TOKEN_LENGTH = 2 * FIELD_DIGITS + 1;
const UNDERSCORE = 0x5f;
const ZEROS = "0".repeat(FIELD_DIGITS);

/**
 * Reads an offset token (specification 2.2): `-1`, `now`, or `<16 digits>_<16 digits>` with both numbers at most
 * 2^53-1. Anything else is `null`. Whether the stream has such a place is for the stream to say.
 */
export function parseOffset(text: string): ParsedOffset | null {
  if (text === "-1") return START;
  if (text === "now") return NOW;
  if (text.length !== TOKEN_LENGTH || text.charCodeAt(FIELD_DIGITS) !== UNDERSCORE) return null;
  const segmentStart = parseDigits(text, 0, FIELD_DIGITS);
  const byteInSegment = parseDigits(text, FIELD_DIGITS + 1, TOKEN_LENGTH);
  if (segmentStart === null || byteInSegment === null) return null;
  return { kind: "at", segmentStart, byteInSegment };
}

/**
 * Writes the token of a place: the position of the segment's first byte and the byte within it, both integers from 0 to
 * 2^53-1. Tokens of one stream sort as text in the order of their places.
 */
export function formatOffset(segmentStart: number, byteInSegment: number): string {
  return `${padded(segmentStart)}_${padded(byteInSegment)}`;
}

function padded(value: number): string {
  const digits = String(value);
  return ZEROS.slice(digits.length) + digits;
}
