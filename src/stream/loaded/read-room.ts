import { StorageBusyError, type MaybePromise } from "../../storage/storage.js";
import type { ReadClient } from "../rules/scan-turns.js";

/** Memory that reads under way take together, in bytes. One always fits. */
export const MAX_READ_BYTES: number = 128 * 1024 * 1024;
/** Reads up to this are not counted. */
const SMALL_READ_BYTES = 64 * 1024;
/** Most reads that wait for room. */
const MAX_WAITING_READS = 4096;

/** A stream, which stays in memory while a read of it waits. */
interface Retained {
  retain(): void;
  release(): void;
}

interface Waiting {
  readonly bytes: number;
  readonly client: ReadClient | undefined;
  readonly enter: (isWanted: boolean) => void;
}

/**
 * Bounds what is read at a time: who asks for large reads by the hundred has them one after the other. Once they are
 * read they count as answers.
 */
export class ReadRoom {
  #freeBytes = MAX_READ_BYTES;
  readonly #waiting: Waiting[] = [];

  /**
   * Reads up to `bytes`, once there is room for them: at once where there is. Throws StorageBusyError where too many
   * wait, and when it is the turn of a `client` that has gone.
   */
  use<T>(
    stream: Retained,
    bytes: number,
    client: ReadClient | undefined,
    read: () => MaybePromise<T>,
  ): MaybePromise<T> {
    if (bytes <= SMALL_READ_BYTES) return read();
    if (client?.isGone === true) throw goneError();
    const taken = Math.min(bytes, MAX_READ_BYTES);
    if (this.#waiting.length > 0 || taken > this.#freeBytes) return this.#useLater(stream, taken, client, read);
    this.#freeBytes -= taken;
    return this.#use(taken, read);
  }

  async #useLater<T>(
    stream: Retained,
    bytes: number,
    client: ReadClient | undefined,
    read: () => MaybePromise<T>,
  ): Promise<T> {
    if (this.#waiting.length >= MAX_WAITING_READS) throw new StorageBusyError("too many reads wait for memory");
    stream.retain();
    try {
      const isWanted = await new Promise<boolean>((enter) => this.#waiting.push({ bytes, client, enter }));
      if (!isWanted) throw goneError();
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
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const isWanted = next.client?.isGone !== true;
      if (isWanted && next.bytes > this.#freeBytes) return;
      this.#waiting.shift();
      if (isWanted) this.#freeBytes -= next.bytes;
      next.enter(isWanted);
    }
  }
}

function goneError(): StorageBusyError {
  return new StorageBusyError("the client of a read has gone");
}
