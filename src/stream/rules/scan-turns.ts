// Lets searches for a place take turns, so that they hold few bytes and leave the event loop to others.

import { nextTurn, Turns } from "../../ops/turns.js";
import { StorageBusyError, type MaybePromise } from "../../storage/storage.js";

/** Up to so many bytes are looked through at once: that takes about a tenth of a millisecond. */
const SMALL_SCAN_BYTES = 16 * 1024;
/** Most searches that take turns. */
const MAX_SCANS = 1024;

/** Who waits for what is read. */
export interface ReadClient {
  readonly isGone: boolean;
}

/**
 * The turns of all searches in this process, as it has one event loop: one of them goes on in a turn of that loop, as
 * bytes that are in memory already would be looked through without a pause.
 */
const TURNS = new Turns(1);
let scansUnderWay = 0;

/** Searches through bytes for the ends of messages, step by step. */
export async function whileScanning<T>(client: ReadClient | undefined, search: (scan: Scan) => Promise<T>): Promise<T> {
  const scan = new Scan(client);
  try {
    return await search(scan);
  } finally {
    scan.end();
  }
}

/** A search under way. */
export class Scan {
  readonly #client: ReadClient | undefined;
  #isCounted = false;

  constructor(client: ReadClient | undefined) {
    this.#client = client;
  }

  /**
   * Reads and looks through up to `bytes`, at most some hundred KiB, when it is its turn: who waits holds nothing.
   * Throws StorageBusyError where too many searches take turns, and once the client has gone.
   */
  async step<T>(bytes: number, look: () => MaybePromise<T>): Promise<T> {
    if (bytes <= SMALL_SCAN_BYTES) return look();
    this.#count();
    return TURNS.run(async () => {
      await nextTurn();
      if (this.#client?.isGone === true) throw new StorageBusyError("the client has gone that a place is sought for");
      return look();
    });
  }

  #count(): void {
    if (this.#isCounted) return;
    if (scansUnderWay >= MAX_SCANS) throw new StorageBusyError("too many places are sought in streams");
    scansUnderWay += 1;
    this.#isCounted = true;
  }

  end(): void {
    if (this.#isCounted) scansUnderWay -= 1;
    this.#isCounted = false;
  }
}
