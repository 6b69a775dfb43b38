import { crc32 } from "../format/crc32.js";

/** What each byte does to a CRC, and which byte has a given highest byte in it: no two have the same. */
const TABLE: readonly number[] = Array.from(
  { length: 256 },
  (_, byte) => (crc32(Buffer.from([byte])) ^ crc32(Buffer.from([0]))) >>> 0,
);
const BY_HIGHEST = new Map(TABLE.map((value, byte) => [value >>> 24, byte]));

/**
 * The changes of one byte among `length`, by exclusive or, that change a CRC-32 by `difference`: taken back byte by
 * byte from the end.
 */
export function* byteChanges(
  difference: number,
  length: number,
): Generator<{ readonly offset: number; readonly change: number }> {
  let rest = difference;
  for (let offset = length - 1; offset >= 0; offset -= 1) {
    const change = BY_HIGHEST.get(rest >>> 24) ?? 0;
    const value = TABLE[change] ?? 0;
    if (change !== 0 && value === rest) yield { offset, change };
    rest = (((rest ^ value) << 8) | change) >>> 0;
  }
}

/** Whether exactly one bit of `value` is set. */
export function isOneBit(value: number): boolean {
  return value !== 0 && (value & (value - 1)) === 0;
}
