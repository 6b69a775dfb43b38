import { crc32 as zlibCrc32 } from "node:zlib";
import { nextTurn } from "../../../ops/turns.js";

/** CRC-32 (the polynomial of zlib) of `bytes`, carried on from `seed`, the CRC of what came before. */
export function crc32(bytes: Buffer, seed = 0): number {
  return zlibCrc32(bytes, seed);
}

/** So much is checksummed in a turn of the event loop: a millisecond for each 4 MiB. */
const BYTES_IN_TURN = 32 * 1024 * 1024;

/** The same of `bytes` that may be so many that others would wait for it. */
export async function crc32InTurns(bytes: Buffer): Promise<number> {
  let crc = crc32(bytes.subarray(0, BYTES_IN_TURN));
  for (let at = BYTES_IN_TURN; at < bytes.length; at += BYTES_IN_TURN) {
    await nextTurn();
    crc = crc32(bytes.subarray(at, at + BYTES_IN_TURN), crc);
  }
  return crc;
}

const POLYNOMIAL = 0xedb88320;
const HIGHEST_BIT = 0x80000000;

/** The product of two polynomials over GF(2) modulo CRC-32's, bits in reflected order. */
function multiply(left: number, right: number): number {
  let product = 0;
  let shifted = right;
  for (let bit = HIGHEST_BIT; bit !== 0; bit >>>= 1) {
    if ((left & bit) !== 0) product ^= shifted;
    shifted = (shifted & 1) !== 0 ? (shifted >>> 1) ^ POLYNOMIAL : shifted >>> 1;
  }
  return product >>> 0;
}

/** `SQUARES[n]` is x to the power of 2^n. */
const SQUARES: readonly number[] = squares();

function squares(): number[] {
  const table = [HIGHEST_BIT >>> 1];
  for (let power = table[0] ?? 0; table.length < 64; table.push(power)) power = multiply(power, power);
  return table;
}

/**
 * The CRC of two runs of bytes one after the other, from the CRC of each and the length of the second: what a segment's
 * running CRC becomes when bytes join it that were checksummed elsewhere.
 */
export function combineCrc32(first: number, second: number, secondLength: number): number {
  let shift = HIGHEST_BIT;
  // A byte is eight bits: the length in bits has its lowest bit at 2^3.
  for (let power = 3, rest = secondLength; rest > 0; power += 1, rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) shift = multiply(SQUARES[power] ?? 0, shift);
  }
  return (multiply(shift, first) ^ second) >>> 0;
}
