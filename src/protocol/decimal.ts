const MAX_DIGITS = 16;

/** Reads a plain decimal from 0 to 2^53-1: digits only, no leading zero except in `0` itself; `null` for others. */
export function parseDecimal(text: string): number | null {
  if (text.length === 0 || text.length > MAX_DIGITS) return null;
  if (text.charCodeAt(0) === 0x30) return text.length === 1 ? 0 : null;
  return parseDigits(text, 0, text.length);
}

/** Reads the digits of `text` from `start` to `end`, at most 16; `null` for other characters or above 2^53-1. */
export function parseDigits(text: string, start: number, end: number): number | null {
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return null;
    value = value * 10 + digit;
  }
  // Only the sixteenth digit can round, and rounding never brings a larger value back to 2^53-1.
  return value <= Number.MAX_SAFE_INTEGER ? value : null;
}
