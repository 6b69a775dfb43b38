// The tar format (POSIX ustar), as far as an archive of streams needs it: plain files, one after the other.

/** Files begin at multiples of this, and the archive ends with two of them that are all zeros. */
export const BLOCK_BYTES = 512;
/** The end of an archive. */
export const ARCHIVE_END: Buffer = Buffer.alloc(2 * BLOCK_BYTES);

const NAME_BYTES = 100;
const SIZE_AT = 124;
const SIZE_BYTES = 12;
const CHECKSUM_AT = 148;
const CHECKSUM_BYTES = 8;
const TYPE_AT = 156;
const MAGIC_AT = 257;
const MAGIC = "ustar\u000000";
/** The largest size in octal digits; beyond it the size is binary, as GNU tar has it. */
const MAX_OCTAL_SIZE = 8 ** 11 - 1;
const BINARY_SIZE = 0x80;
const PLAIN_FILE = 0x30;

/** A file in an archive. */
export interface TarEntry {
  readonly name: string;
  /** Bytes of the file, without the zeros that fill its last block. */
  readonly size: number;
}

/** The header of a file: `name` is at most 100 bytes of ASCII. */
export function tarHeader({ name, size }: TarEntry, mtimeMs: number): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(name, 0, "latin1");
  header.write("0000644\u00000000000\u00000000000\u0000", NAME_BYTES, "latin1");
  if (size <= MAX_OCTAL_SIZE) header.write(`${octal(size, SIZE_BYTES - 1)}\u0000`, SIZE_AT, "latin1");
  else {
    header[SIZE_AT] = BINARY_SIZE;
    header.writeBigUInt64BE(BigInt(size), SIZE_AT + SIZE_BYTES - 8);
  }
  header.write(`${octal(Math.floor(mtimeMs / 1000), 11)}\u0000`, SIZE_AT + SIZE_BYTES, "latin1");
  header[TYPE_AT] = PLAIN_FILE;
  header.write(MAGIC, MAGIC_AT, "latin1");
  header.write(`${octal(checksumOf(header), 6)}\u0000 `, CHECKSUM_AT, "latin1");
  return header;
}

/** The zeros that fill the last block of a file. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES);
}

/** The file that a block is the header of; `end` for a block of zeros; `null` where it is neither. */
export function parseTarHeader(block: Buffer): TarEntry | "end" | null {
  if (block.every((byte) => byte === 0)) return "end";
  const written = Number.parseInt(block.toString("latin1", CHECKSUM_AT, CHECKSUM_AT + CHECKSUM_BYTES), 8);
  if (written !== checksumOf(block) || (block[TYPE_AT] !== PLAIN_FILE && block[TYPE_AT] !== 0)) return null;
  const end = block.indexOf(0);
  const name = block.toString("latin1", 0, Math.min(end, NAME_BYTES));
  const digits = block.toString("latin1", SIZE_AT, SIZE_AT + SIZE_BYTES).replace(/[\0 ]+$/, "");
  const size =
    block[SIZE_AT] === BINARY_SIZE
      ? Number(block.readBigUInt64BE(SIZE_AT + SIZE_BYTES - 8))
      : Number.parseInt(/^ *[0-7]+$/.test(digits) ? digits : "x", 8);
  return Number.isSafeInteger(size) && size >= 0 ? { name, size } : null;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}

/** The sum of all bytes, where those of the checksum itself count as spaces. */
function checksumOf(block: Buffer): number {
  let sum = CHECKSUM_BYTES * 0x20;
  for (const [at, byte] of block.entries()) if (at < CHECKSUM_AT || at >= CHECKSUM_AT + CHECKSUM_BYTES) sum += byte;
  return sum;
}
