/** Blocks of an index: entries do not cross their borders, so that one can be found without those before it. */
export const INDEX_BLOCK_BYTES = 4096;
/** An index up to this size is in its stream's sidecar; a longer one has a file of its own. */
export const MAX_INLINE_INDEX_BYTES = 256;

/** What an index says before an entry: all blocks but the first begin with it. */
export interface IndexBase {
  /** Bytes of the segment up to here. */
  readonly end: number;
  /** When the append that ends here was made, in milliseconds since 1970 UTC. */
  readonly atMs: number;
  /** Messages up to here. */
  readonly messages: number;
}

/** How far an index has come. */
export interface IndexMark extends IndexBase {
  /** Bytes of the index. */
  readonly length: number;
}

/** An index as its segment's sidecar knows it. */
export interface StoredIndex extends Omit<IndexMark, "end"> {
  /** The index itself; `null` where it is in its file, whose first `length` bytes have the CRC-32 `crc`. */
  readonly inline: Uint8Array | null;
  readonly crc: number;
}

/** The ends of appends around a byte of a segment. */
export interface Neighbours {
  /** The last that is not after the byte; 0 where none is. */
  readonly before: number;
  /** The first after it. */
  readonly after: number;
}

/** The end in bytes, the time and the messages before the block's first entry: three numbers of eight bytes. */
const BASE_BYTES = 24;
/** A length and a number of messages of at most 2^33, a time of at most 2^53. */
const MAX_ENTRY_BYTES = 5 + 8 + 5;
/** V8 keeps arrays of this size within its heap, without memory of their own: most streams need no more. */
const FIRST_BYTES = 64;
const NO_BYTES = new Uint8Array(0);

/**
 * Where the appends of a segment end, and when they were made: a few bytes for each. An entry is the append's length
 * doubled, plus one where it has not just one message; the milliseconds since the append before it; and that number of
 * messages where it is not one: variable-length numbers of seven bits a byte, lowest first. A zero ends a block early.
 */
export class AppendIndex {
  /** How much of the segment it covers. */
  #end: number;
  #messages: number;
  #atMs: number;
  #length: number;
  /** How many of its bytes are in its file, and their CRC-32. */
  #written = 0;
  #crc = 0;
  /** Its bytes from `written` on, and room for more. */
  #pending: Uint8Array = NO_BYTES;
  /** Whether its file holds bytes that were not synced, and whether the directory's entry of the file is permanent. */
  isUnsynced = false;
  isEntered = false;
  /** What another process wrote of the file, while nobody has compared it with its CRC. */
  unchecked: { readonly length: number; readonly crc: number } | null = null;
  /** The last answer of a search: readers of a stream often ask for the same place. */
  lastFound: Neighbours | null = null;

  /** That of a segment whose first byte was appended at `firstAtMs`. */
  constructor(firstAtMs: number) {
    this.#end = 0;
    this.#messages = 0;
    this.#atMs = firstAtMs;
    this.#length = 0;
  }

  /** The index that a sidecar has for a segment of so many bytes. */
  static of(stored: StoredIndex, segmentLength: number): AppendIndex {
    const index = new AppendIndex(stored.atMs);
    index.#end = segmentLength;
    index.#messages = stored.messages;
    index.#length = stored.length;
    if (stored.inline !== null) {
      index.#pending = stored.inline;
      return index;
    }
    index.#written = stored.length;
    index.#crc = stored.crc;
    index.isEntered = true;
    index.unchecked = { length: stored.length, crc: stored.crc };
    return index;
  }

  get mark(): IndexMark {
    return { end: this.#end, messages: this.#messages, atMs: this.#atMs, length: this.#length };
  }

  get end(): number {
    return this.#end;
  }

  /** Bytes of the index. */
  get length(): number {
    return this.#length;
  }

  /** How many of its bytes are in its file. */
  get written(): number {
    return this.#written;
  }

  /** The CRC-32 of those. */
  get crc(): number {
    return this.#crc;
  }

  /** Adds an append. A clock that was put back counts as one that stood still: times in an index never fall. */
  add(bytes: number, messages: number, atMs: number): void {
    const elapsedMs = Math.max(0, Math.round(atMs - this.#atMs));
    if (INDEX_BLOCK_BYTES - (this.#length % INDEX_BLOCK_BYTES) < MAX_ENTRY_BYTES) this.#beginBlock();
    this.#makeRoom(MAX_ENTRY_BYTES);
    this.#put(bytes * 2 + (messages === 1 ? 0 : 1));
    this.#put(elapsedMs);
    if (messages !== 1) this.#put(messages);
    this.#end += bytes;
    this.#messages += messages;
    this.#atMs += elapsedMs;
  }

  /** The bytes from `from`, which its file does not have, up to `to`; they do not change. */
  bytes(from: number, to: number): Uint8Array {
    return this.#pending.subarray(from - this.#written, to - this.#written);
  }

  /** The next bytes up to `limit` are in the file, whose CRC is `crc` with them. */
  noteWritten(limit: number, crc: number): void {
    // A copy, so that what is written leaves memory.
    const rest = this.#length - limit;
    this.#pending = rest === 0 ? NO_BYTES : this.#pending.slice(limit - this.#written, this.#length - this.#written);
    this.#written = limit;
    this.#crc = crc;
  }

  #beginBlock(): void {
    const start = Math.ceil(this.#length / INDEX_BLOCK_BYTES) * INDEX_BLOCK_BYTES;
    this.#makeRoom(start - this.#length + BASE_BYTES);
    this.#pending.fill(0, this.#length - this.#written, start - this.#written);
    const view = new DataView(this.#pending.buffer, this.#pending.byteOffset);
    for (const [at, value] of [this.#end, this.#atMs, this.#messages].entries())
      view.setFloat64(start - this.#written + 8 * at, value, true);
    this.#length = start + BASE_BYTES;
  }

  #makeRoom(bytes: number): void {
    const used = this.#length - this.#written;
    if (used + bytes <= this.#pending.length) return;
    const grown = new Uint8Array(Math.max(FIRST_BYTES, 2 * this.#pending.length, used + bytes));
    grown.set(this.#pending.subarray(0, used));
    this.#pending = grown;
  }

  #put(value: number): void {
    let rest = value;
    while (rest >= 128) {
      this.#pending[this.#length++ - this.#written] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    this.#pending[this.#length++ - this.#written] = rest;
  }
}

/** What stands in the place of an index that is lost: reads of its segment end anywhere. */
export const UNKNOWN_INDEX = new AppendIndex(0);

/** An append as an index has it: where it ends, when it was made, and the messages up to its end. */
export type VisitAppend = (end: number, atMs: number, messages: number) => boolean;

/**
 * Goes through the appends of a block until `visit` says false. The first block has no base of its own: it is `first`.
 * Returns what the block says at its end or where it was left; `null` where it is no block of an index.
 */
export function scanBlock(block: Uint8Array, first: IndexBase | null, visit: VisitAppend): IndexBase | null {
  const base = first ?? baseOf(block);
  if (base === null) return null;
  let { end, atMs, messages } = base;
  const cursor = { at: first === null ? BASE_BYTES : 0 };
  while (cursor.at < block.length && block[cursor.at] !== 0) {
    const head = take(block, cursor);
    const elapsedMs = take(block, cursor);
    const count = head % 2 === 0 ? 1 : take(block, cursor);
    if (cursor.at > block.length) return null;
    end += Math.floor(head / 2);
    atMs += elapsedMs;
    messages += count;
    if (!visit(end, atMs, messages)) break;
  }
  return { end, atMs, messages };
}

/** What a block other than the first begins with; `null` where it is too short. */
export function baseOf(block: Uint8Array): IndexBase | null {
  if (block.length < BASE_BYTES) return null;
  const view = new DataView(block.buffer, block.byteOffset);
  return { end: view.getFloat64(0, true), atMs: view.getFloat64(8, true), messages: view.getFloat64(16, true) };
}

/** Reads a number; past the end of the bytes the cursor goes, too. */
function take(bytes: Uint8Array, cursor: { at: number }): number {
  let value = 0;
  let unit = 1;
  for (;;) {
    const byte = bytes[cursor.at++];
    if (byte === undefined) return value;
    value += (byte % 128) * unit;
    if (byte < 128) return value;
    unit *= 128;
  }
}

/** The index of a segment with one append, as `null` stands for it in memory. */
export function indexOfOne(bytes: number, atMs: number): AppendIndex {
  const index = new AppendIndex(atMs);
  index.add(bytes, 1, atMs);
  return index;
}
