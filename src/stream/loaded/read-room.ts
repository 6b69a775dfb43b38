import { StorageBusyError, type MaybePromise } from "../../storage/storage.js";
import type { ReadClient } from "../rules/scan-turns.js";

/** Memory that reads under way take together, in bytes. One always fits. */
export const MAX_READ_BYTES: number = 128 * 1024 * 1024;
/** Reads up to this are not counted. */
const SMALL_READ_BYTES = 64 * 1024;
/** Most reads that wait for room. */
const MAX_WAITING_READS = 4096;
/** What is begun or handed out in a turn of the event loop, in bytes: both take time. One always is. */
const MAX_TURN_BYTES = 4 * 1024 * 1024;

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

/** What was read, and waits for its turn. */
interface Ready {
  readonly bytes: number;
  readonly handOut: () => void;
}

/**
 * Bounds what is read at a time: who asks for large reads by the hundred has them one after the other, and others have
 * their turn in between. Once they are handed out they count as answers.
 */
export class ReadRoom {
  #freeBytes = MAX_READ_BYTES;
  readonly #waiting: Waiting[] = [];
  readonly #ready: Ready[] = [];
  #turnBytes = 0;

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
    if (this.#waiting.length > 0 || !this.#mayEnter(taken)) return this.#useLater(stream, taken, client, read);
    this.#enter(taken);
    return this.#use(taken, client, read);
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
      return await this.#use(bytes, client, read);
    } finally {
      stream.release();
    }
  }

  #use<T>(bytes: number, client: ReadClient | undefined, read: () => MaybePromise<T>): MaybePromise<T> {
    let found: MaybePromise<T>;
    try {
      found = read();
    } catch (fault) {
      this.#give(bytes);
      throw fault;
    }
    if (found instanceof Promise) return this.#handOut(bytes, client, found);
    this.#give(bytes);
    return found;
  }

  /** What was found, once it is its turn; nothing for a `client` that has gone by then. */
  async #handOut<T>(bytes: number, client: ReadClient | undefined, coming: Promise<T>): Promise<T> {
    try {
      const found = await coming;
      if (this.#ready.length === 0 && this.#fitsTurn(bytes)) this.#addToTurn(bytes);
      else await new Promise<void>((handOut) => this.#ready.push({ bytes, handOut }));
      if (client?.isGone === true) throw goneError();
      return found;
    } finally {
      // Whoever gets it counts it as an answer, in the same turn, before the next one reads.
      setImmediate(() => this.#give(bytes));
    }
  }

  #mayEnter(bytes: number): boolean {
    return bytes <= this.#freeBytes && this.#fitsTurn(bytes);
  }

  #enter(bytes: number): void {
    this.#freeBytes -= bytes;
    this.#addToTurn(bytes);
  }

  #give(bytes: number): void {
    this.#freeBytes += bytes;
    this.#enterNext();
  }

  #enterNext(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const isWanted = next.client?.isGone !== true;
      if (isWanted && !this.#mayEnter(next.bytes)) return;
      this.#waiting.shift();
      if (isWanted) this.#enter(next.bytes);
      next.enter(isWanted);
    }
  }

  #fitsTurn(bytes: number): boolean {
    return this.#turnBytes === 0 || this.#turnBytes + bytes <= MAX_TURN_BYTES;
  }

  #addToTurn(bytes: number): void {
    if (this.#turnBytes === 0) setImmediate(() => this.#nextTurn());
    this.#turnBytes += bytes;
  }

  #nextTurn(): void {
    this.#turnBytes = 0;
    for (let next = this.#ready[0]; next !== undefined && this.#fitsTurn(next.bytes); next = this.#ready[0]) {
      this.#ready.shift();
      this.#addToTurn(next.bytes);
      next.handOut();
    }
    this.#enterNext();
  }
}

function goneError(): StorageBusyError {
  return new StorageBusyError("the client of a read has gone");
}
