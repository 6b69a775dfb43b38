import type { Clock } from "../../ops/clock.js";
import type { Allocate } from "../../stream/loaded/stream.js";
import type { Exchange } from "../exchange/exchange.js";

/** Most bytes that wait to be used again, and how long the unused wait at the most. */
const MAX_FREE_BYTES = 16 * 1024 * 1024;
const FREE_MS = 10_000;
/** What is no larger is not worth it, and may be copied into its answer. */
const MAX_OWN_BYTES = 64 * 1024;

/**
 * Memory for large chunks on their way from the disk to one client. New memory for each, given back only when it is
 * collected, is memory that no processor has in its cache: a tenth of what a large read costs.
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

  /** Where a read for this answer gets its memory. In somebody else's server there may be who keeps what is sent. */
  allocatorFor({ isOwn }: Exchange): Allocate | undefined {
    return isOwn ? this.#allocate : undefined;
  }

  /** What is less than half a buffer gets memory of its own: a slow client would hold far more than it is sent. */
  readonly #allocate: Allocate = (bytes) => {
    if (bytes <= this.#bufferBytes / 2 || bytes > this.#bufferBytes || bytes <= MAX_OWN_BYTES) return Buffer.allocUnsafeSlow(bytes);
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#bufferBytes);
    this.#lent.set(buffer.buffer, buffer);
    return buffer.subarray(0, bytes);
  };

  /**
   * The memory of `bytes` may be used again once the answer, which is decided on, has nothing more to send, and nobody
   * else has it. Does nothing for other memory. What never comes back here is collected like everything else.
   */
  takeBackAfter(exchange: Exchange, bytes: Buffer): void {
    if (bytes.length <= this.#bufferBytes / 2) return;
    const buffer = this.#lent.get(bytes.buffer);
    if (buffer === undefined) return;
    this.#lent.delete(bytes.buffer);
    // A direct answer has none of it: it is a 304 or a refusal, or nobody is left to answer.
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
