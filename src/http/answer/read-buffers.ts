// Reuses the memory of large reads.

import type { Clock } from "../../ops/clock.js";
import type { Allocate } from "../../stream/loaded/stream.js";
import type { Exchange } from "../exchange/exchange.js";

/** Most bytes kept for reuse, and the longest time that an unused buffer is kept. */
const MAX_FREE_BYTES = 16 * 1024 * 1024;
const FREE_MS = 10_000;
/** Chunks up to this size are not worth it, and may be copied into their answers. */
const MAX_OWN_BYTES = 64 * 1024;

/**
 * Reuses memory for large chunks between the disk and one client. New memory for each, freed only by a collection,
 * would be in no processor's cache: a tenth of the cost of a large read.
 */
export class ReadBuffers {
  readonly #bufferBytes: number;
  readonly #clock: Clock;
  #free: Buffer[] = [];
  readonly #lent = new WeakMap<ArrayBufferLike, Buffer>();
  #isEmptyingDue = false;

  /** Buffers have `bufferBytes`, the size of a chunk. */
  constructor(bufferBytes: number, clock: Clock) {
    this.#bufferBytes = bufferBytes;
    this.#clock = clock;
  }

  /** Where a read for this answer gets its memory. In an embedding server other code may keep what is sent. */
  allocatorFor({ isOwn }: Exchange): Allocate | undefined {
    return isOwn ? this.#allocate : undefined;
  }

  /**
   * A chunk of less than half a buffer gets memory of its own: otherwise a slow client would hold far more than it is
   * sent.
   */
  readonly #allocate: Allocate = (bytes) => {
    if (bytes <= this.#bufferBytes / 2 || bytes > this.#bufferBytes || bytes <= MAX_OWN_BYTES)
      return Buffer.allocUnsafeSlow(bytes);
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#bufferBytes);
    this.#lent.set(buffer.buffer, buffer);
    return buffer.subarray(0, bytes);
  };

  /**
   * Reuses the memory of `bytes` once the answer, which is decided, has nothing more to send and nobody else uses it.
   * Does nothing for other memory. A buffer that never comes back is collected like everything else.
   */
  takeBackAfter(exchange: Exchange, bytes: Buffer): void {
    if (bytes.length <= this.#bufferBytes / 2) return;
    const buffer = this.#lent.get(bytes.buffer);
    if (buffer === undefined) return;
    this.#lent.delete(bytes.buffer);
    // A direct answer does not contain it: it is a 304 or a refusal, or the client has gone.
    if (exchange.direct !== null) this.#keep(buffer);
    else exchange.res.once("close", () => this.#keep(buffer));
  }

  #keep(buffer: Buffer): void {
    if ((this.#free.length + 1) * this.#bufferBytes > MAX_FREE_BYTES) return;
    this.#free.push(buffer);
    if (this.#isEmptyingDue) return;
    this.#isEmptyingDue = true;
    this.#clock.after(FREE_MS, () => {
      this.#isEmptyingDue = false;
      this.#free = [];
    });
  }
}
