// Bytes of lines, put together in place: a line that is made as a string costs several times as much.

/** Texts up to this length are written faster here than by a call into the engine. */
const SHORT_CHARS = 24;
const ZERO = 48;
const POINT = 46;

/** A block of whole lines, and of the one that is being written. */
export class LineBytes {
  readonly bytes: Buffer;
  /** How many bytes are written. */
  length = 0;

  /** Holds `size` bytes. Whoever writes sees to it that they are enough. */
  constructor(size: number) {
    this.bytes = Buffer.allocUnsafeSlow(size);
  }

  /** Adds bytes that were made before. */
  add(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** Adds the bytes of this block from `from` up to `to` once more. */
  repeat(from: number, to: number): void {
    this.bytes.copyWithin(this.length, from, to);
    this.length += to - from;
  }

  /** Adds a text of ASCII. */
  addText(text: string): void {
    this.overwrite(this.length, text);
    this.length += text.length;
  }

  /** Writes a text of ASCII to where others are. */
  overwrite(start: number, text: string): void {
    const { bytes } = this;
    const { length } = text;
    if (length > SHORT_CHARS) bytes.write(text, start, length, "latin1");
    else for (let at = 0; at < length; at += 1) bytes[start + at] = text.charCodeAt(at);
  }

  /** Adds a number from 0 to 999 as three digits. */
  addThreeDigits(number: number): void {
    const { bytes, length } = this;
    const tens = Math.floor(number / 10);
    const hundreds = Math.floor(tens / 10);
    bytes[length] = ZERO + hundreds;
    bytes[length + 1] = ZERO + tens - hundreds * 10;
    bytes[length + 2] = ZERO + number - tens * 10;
    this.length = length + 3;
  }

  /** Adds an integer that is not negative and at most 2^53 - 1. */
  addInteger(integer: number): void {
    const { bytes, length: start } = this;
    let end = start + 1;
    for (let limit = 10; integer >= limit; limit *= 10) end += 1;
    let rest = integer;
    for (let at = end - 1; at >= start; at -= 1) {
      bytes[at] = ZERO + (rest % 10);
      rest = Math.floor(rest / 10);
    }
    this.length = end;
  }

  /** Adds so many tenths, as a number. */
  addTenths(tenths: number): void {
    const whole = Math.floor(tenths / 10);
    this.addInteger(whole);
    if (tenths === whole * 10) return;
    this.addByte(POINT);
    this.addByte(ZERO + tenths - whole * 10);
  }

  /** Adds one byte. */
  addByte(byte: number): void {
    this.bytes[this.length] = byte;
    this.length += 1;
  }
}
