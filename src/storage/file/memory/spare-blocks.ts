/** Blocks that are kept where the cache has no room for them. */
const MIN_SPARES = 16;
/** Blocks that are made at a time, at most. */
const MAX_RESERVED = 1024;

/**
 * Memory of a cache for its blocks of the largest size, while nothing is in it. New memory costs more than to fill it:
 * the system clears each page, and V8 counts it towards its next full collection. So all that the cache has room for
 * is made when the first is needed, and counts once; the system gives it when it is written to.
 */
export class SpareBlocks {
  readonly #blockBytes: number;
  readonly #blocks: Buffer[] = [];
  #isReserved = false;

  constructor(blockBytes: number) {
    this.#blockBytes = blockBytes;
  }

  /** Memory of the blocks that wait. */
  get bytes(): number {
    return this.#blocks.length * this.#blockBytes;
  }

  /** A block, whatever it holds, for a cache that may have `roomBytes` more. */
  take(roomBytes: number): Buffer {
    if (!this.#isReserved) {
      this.#isReserved = true;
      const count = Math.min(MAX_RESERVED, Math.floor(roomBytes / this.#blockBytes));
      for (let made = 0; made < count; made += 1) this.#blocks.push(this.#made());
    }
    return this.#blocks.pop() ?? this.#made();
  }

  /** Takes a block back that nobody holds any more. */
  give(block: Buffer, roomBytes: number): void {
    this.#blocks.push(block);
    this.fit(roomBytes);
  }

  /** Leaves to the collector what the cache has no room for any more. */
  fit(roomBytes: number): void {
    while (this.#blocks.length > MIN_SPARES && this.bytes > roomBytes) this.#blocks.pop();
  }

  #made(): Buffer {
    return Buffer.allocUnsafeSlow(this.#blockBytes);
  }
}
