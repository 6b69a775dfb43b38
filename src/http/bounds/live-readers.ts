// Limits the readers that wait for more.

import { problem, type Problem } from "../encoding/problems.js";

const TOO_MANY = problem("overloaded", { detail: "Too many live readers: the server's limit is --max-live-readers." });
const TOO_MANY_OF_CLIENT = problem("overloaded", {
  detail: "Too many live readers of this client: the limit is --max-live-readers-per-client.",
});

/** How many live readers there may be. `Infinity` is no limit. */
export interface LiveReaderLimits {
  readonly maxLiveReaders: number;
  readonly maxLiveReadersPerClient: number;
}

/** Counts the SSE readers and the waiting long-polls, in all and of each client. */
export class LiveReaders {
  readonly #max: number;
  readonly #maxPerClient: number;
  /** Only of clients that have some, and only where they are limited. */
  readonly #byClient = new Map<string, number>();
  #count = 0;

  constructor({ maxLiveReaders, maxLiveReadersPerClient }: LiveReaderLimits) {
    this.#max = maxLiveReaders;
    this.#maxPerClient = maxLiveReadersPerClient;
  }

  /** Live readers that are there now. */
  get size(): number {
    return this.#count;
  }

  /** Clients that have some, as far as they are counted. */
  get clients(): number {
    return this.#byClient.size;
  }

  /** Adds a reader of `client`, and returns what to call once when it is over; or why there is no room for it. */
  enter(client: string): (() => void) | Problem {
    if (this.#count >= this.#max) return TOO_MANY;
    if (this.#maxPerClient === Infinity) {
      this.#count += 1;
      return this.#leave;
    }
    const ofClient = this.#byClient.get(client) ?? 0;
    if (ofClient >= this.#maxPerClient) return TOO_MANY_OF_CLIENT;
    this.#count += 1;
    this.#byClient.set(client, ofClient + 1);
    return () => this.#leaveAs(client);
  }

  /** One function for all readers of clients that are not counted. */
  readonly #leave = (): void => {
    this.#count -= 1;
  };

  #leaveAs(client: string): void {
    this.#leave();
    const ofClient = this.#byClient.get(client) ?? 0;
    if (ofClient > 1) this.#byClient.set(client, ofClient - 1);
    else this.#byClient.delete(client);
  }
}
