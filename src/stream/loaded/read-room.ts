import type { MaybePromise } from "../../storage/storage.js";

/** Memory that reads under way take together, in bytes. One always fits. */
export const MAX_READ_BYTES: number = 128 * 1024 * 1024;
/** Reads up to this are not counted. */
const SMALL_READ_BYTES = 64 * 1024;

/** A stream, which stays in memory while a read of it waits. */
interface Retained {
  retain(): void;
  release(): void;
}

interface Waiting {
  readonly bytes: number;
  readonly enter: () => void;
}

/**
 * Bounds what is read at a time: who asks for large reads by the hundred has them one after the other. Once they are
 * read they count as answers.
 */
export class ReadRoom {
  #freeBytes = MAX_READ_BYTES;
  readonly #waiting: Waiting[] = [];

  /** Reads up to `bytes`, once there is room for them: at once where there is. */
  use<T>(stream: Retained, bytes: number, read: () => MaybePromise<T>): MaybePromise<T> {
    if (bytes <= SMALL_READ_BYTES) return read();
    const taken = Math.min(bytes, MAX_READ_BYTES);
    if (this.#waiting.length > 0 || taken > this.#freeBytes) return this.#useLater(stream, taken, read);
    this.#freeBytes -= taken;
    return this.#use(taken, read);
  }

  async #useLater<T>(stream: Retained, bytes: number, read: () => MaybePromise<T>): Promise<T> {
    stream.retain();
    try {
      await new Promise<void>((enter) => this.#waiting.push({ bytes, enter }));
      return await this.#use(bytes, read);
    } finally {
      stream.release();
    }
  }

  #use<T>(bytes: number, read: () => MaybePromise<T>): MaybePromise<T> {
    let found: MaybePromise<T>;
    try {
      found = read();
    } catch (fault) {
      this.#give(bytes);
      throw fault;
    }
    // Whoever gets it counts it as an answer, in the same turn, before the next one reads.
    if (found instanceof Promise) return found.finally(() => void setImmediate(() => this.#give(bytes)));
    this.#give(bytes);
    return found;
  }

  #give(bytes: number): void {
    this.#freeBytes += bytes;
    for (let next = this.#waiting[0]; next !== undefined && next.bytes <= this.#freeBytes; next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#freeBytes -= next.bytes;
      next.enter();
    }
  }
}
