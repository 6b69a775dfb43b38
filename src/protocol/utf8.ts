import { isUtf8 } from "node:buffer";

const NO_BYTES = Buffer.alloc(0);

/** Checks that bytes are UTF-8, in parts of any size as they arrive. */
export class Utf8Check {
  /** The start of a character whose rest has not arrived. */
  #cut = NO_BYTES;

  /** Where the text stopped being UTF-8, from the beginning of the refused part; negative in the part before it. */
  faultAt = 0;

  /** Whether all parts so far make whole characters. */
  get isWhole(): boolean {
    return this.#cut.length === 0;
  }

  /** Takes the next part; false when the text is not UTF-8 with it. */
  take(part: Buffer): boolean {
    const bytes = this.#cut.length === 0 ? part : Buffer.concat([this.#cut, part]);
    const length = completeTextLength(bytes);
    const isValid = isUtf8(length === bytes.length ? bytes : bytes.subarray(0, length));
    if (!isValid) this.faultAt = validLength(bytes) - this.#cut.length;
    // A copy: otherwise three bytes would keep the memory of the whole part.
    this.#cut = length === bytes.length ? NO_BYTES : Buffer.from(bytes.subarray(length));
    return isValid;
  }
}

/** How many of `bytes`, which are not UTF-8, come before the first that is part of no character. */
function validLength(bytes: Buffer): number {
  let [valid, invalid] = [0, bytes.length];
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >>> 1;
    const text = bytes.subarray(0, middle);
    if (isUtf8(text.subarray(0, completeTextLength(text)))) valid = middle;
    else invalid = middle;
  }
  return completeTextLength(bytes.subarray(0, valid));
}

/**
 * How many of `bytes` can be read as text now: all but a UTF-8 sequence at the end that lacks up to three of its bytes.
 * Bytes that can't become valid UTF-8 do not wait.
 */
export function completeTextLength(bytes: Buffer): number {
  const { length } = bytes;
  for (let tail = 1; tail <= 3 && tail <= length; tail++) {
    const byte = bytes[length - tail] ?? 0;
    if (isContinuation(byte)) continue;
    const isCut = sequenceLength(byte) > tail && (tail === 1 || canFollow(byte, bytes[length - tail + 1] ?? 0));
    return isCut ? length - tail : length;
  }
  return length;
}

/** How many of the bytes from `start` to `end` begin no character. */
export function countContinuations(bytes: Buffer, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end; at++) if (isContinuation(bytes[at] ?? 0)) count++;
  return count;
}

function isContinuation(byte: number): boolean {
  return byte >= 0x80 && byte <= 0xbf;
}

/** The length of a UTF-8 sequence that begins with `lead`; 0 where none does. */
function sequenceLength(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 0;
  if (lead < 0xe0) return 2;
  return lead < 0xf0 ? 3 : 4;
}

/** Whether `second` is neither overlong, nor a surrogate, nor beyond U+10FFFF after `lead` (Unicode, table 3-7). */
function canFollow(lead: number, second: number): boolean {
  switch (lead) {
    case 0xe0:
      return second >= 0xa0;
    case 0xed:
      return second <= 0x9f;
    case 0xf0:
      return second >= 0x90;
    case 0xf4:
      return second <= 0x8f;
    default:
      return true;
  }
}
