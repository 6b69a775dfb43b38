// Gathers the parts of a body without a buffer for each.

/** The size of the first block of a body of unknown length, and the largest size of any block, in bytes. */
const MIN_BLOCK_BYTES = 1024;
const MAX_BLOCK_BYTES = 256 * 1024;

/** A promised length is trusted up to this many bytes: a promise alone must not reserve memory. */
const MAX_BELIEVED_BYTES = 64 * 1024;

/** A part of this size becomes a block without a copy, if it shares its memory with nothing else. */
const OWN_BLOCK_BYTES = 16 * 1024;

/** Bytes joined in one turn of the event loop: about a millisecond for each MiB. */
const JOINED_IN_TURN_BYTES = 32 * 1024 * 1024;

const NO_BYTES: Buffer = Buffer.alloc(0);

/**
 * Gathers bytes that arrive in parts of any size, in blocks that grow with what is there: a buffer of one byte costs
 * Node some 370 others. The memory is at most twice the bytes plus {@link MAX_BLOCK_BYTES}.
 */
export class BodyBlocks {
  readonly #blocks: Buffer[] = [];
  /** The last of them, and how much of it is there. */
  #last = NO_BYTES;
  #lastUsed = 0;
  #length = 0;
  readonly #expectedBytes: number;

  /** `expectedBytes` is the promised length; `null` when it is unknown. */
  constructor(expectedBytes: number | null = null) {
    this.#expectedBytes = Math.min(expectedBytes ?? 0, MAX_BELIEVED_BYTES);
  }

  /** Bytes that have arrived. */
  get length(): number {
    return this.#length;
  }

  /** Memory that is taken, in bytes. */
  get capacity(): number {
    return this.#length + this.#last.length - this.#lastUsed;
  }

  /** Takes the next bytes; `part` belongs to the blocks from now on. */
  add(part: Buffer): void {
    const isFull = this.#lastUsed === this.#last.length;
    if (isFull && part.length >= OWN_BLOCK_BYTES && part.buffer.byteLength === part.length) {
      this.#begin(part, part.length);
      this.#length += part.length;
    } else {
      this.#copy(part);
    }
  }

  #copy(part: Buffer): void {
    for (let from = 0; from < part.length;) {
      if (this.#lastUsed === this.#last.length) this.#begin(Buffer.allocUnsafeSlow(this.#nextBytes()), 0);
      const copied = part.copy(this.#last, this.#lastUsed, from);
      from += copied;
      this.#lastUsed += copied;
      this.#length += copied;
    }
  }

  /** The size of the next block: as much again as is there; for the first block, the promised length. */
  #nextBytes(): number {
    if (this.#length === 0 && this.#expectedBytes > 0) return this.#expectedBytes;
    return Math.min(MAX_BLOCK_BYTES, Math.max(MIN_BLOCK_BYTES, this.#length));
  }

  #begin(block: Buffer, used: number): void {
    this.#blocks.push(block);
    this.#last = block;
    this.#lastUsed = used;
  }

  /** All bytes in one buffer of exactly their size. Empties the blocks. */
  join(): Buffer {
    const joining = this.#leave();
    joining.copy(Infinity);
    return joining.joined;
  }

  /** The same, spread over several turns of the event loop where it is too much for one. */
  joinInTurns(): Buffer | Promise<Buffer> {
    return this.#length <= JOINED_IN_TURN_BYTES ? this.join() : joinInTurns(this.#leave());
  }

  #leave(): Joining {
    const joining = new Joining(this.#blocks.splice(0), this.#length);
    this.#last = NO_BYTES;
    this.#lastUsed = 0;
    this.#length = 0;
    return joining;
  }
}

/** Blocks that are being joined. */
class Joining {
  readonly joined: Buffer;
  readonly #blocks: Buffer[];
  #index = 0;
  #at = 0;

  constructor(blocks: Buffer[], length: number) {
    const [first] = blocks;
    const isOne = first !== undefined && first.length === length;
    this.joined = isOne ? first : Buffer.allocUnsafeSlow(length);
    this.#blocks = isOne ? [] : blocks;
  }

  /** Copies whole blocks until `bytes` more are there; false when that was the last. */
  copy(bytes: number): boolean {
    const limit = this.#at + bytes;
    for (; this.#at < limit && this.#index < this.#blocks.length; this.#index += 1) {
      this.#at += this.#blocks[this.#index]?.copy(this.joined, this.#at) ?? 0;
      // It may be collected while the others are copied.
      this.#blocks[this.#index] = NO_BYTES;
    }
    return this.#index < this.#blocks.length;
  }
}

async function joinInTurns(joining: Joining): Promise<Buffer> {
  while (joining.copy(JOINED_IN_TURN_BYTES)) await new Promise<void>((resolve) => setImmediate(resolve));
  return joining.joined;
}
