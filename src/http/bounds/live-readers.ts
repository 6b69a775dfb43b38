// Limits the readers that wait for more.

import type { Log } from "../../ops/log.js";
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

/** How a reader waits for more. */
export type LiveMode = "sse" | "long-poll";

/** Counts the SSE readers and the waiting long-polls, in all and of each client. */
export class LiveReaders {
  /** The most that there may be. */
  readonly limit: number;
  readonly #maxPerClient: number;
  readonly #log: Pick<Log, "warn">;
  #hasWarned = false;
  /** Only of clients that have some, and only where they are limited. */
  readonly #byClient = new Map<string, number>();
  readonly #count = { sse: 0, "long-poll": 0 };

  constructor({ maxLiveReaders, maxLiveReadersPerClient }: LiveReaderLimits, log: Pick<Log, "warn">) {
    this.limit = maxLiveReaders;
    this.#maxPerClient = maxLiveReadersPerClient;
    this.#log = log;
  }

  /** Live readers that are there now. */
  get size(): number {
    return this.#count.sse + this.#count["long-poll"];
  }

  /** Those that wait in one way. */
  sizeOf(mode: LiveMode): number {
    return this.#count[mode];
  }

  /** Clients that have some, as far as they are counted. */
  get clients(): number {
    return this.#byClient.size;
  }

  /** Adds a reader of `client`, and returns what to call once when it is over; or why there is no room for it. */
  enter(client: string, mode: LiveMode): (() => void) | Problem {
    if (this.size >= this.limit) return this.#tooMany();
    if (this.#maxPerClient === Infinity) {
      this.#count[mode] += 1;
      return this.#leave[mode];
    }
    const ofClient = this.#byClient.get(client) ?? 0;
    if (ofClient >= this.#maxPerClient) return TOO_MANY_OF_CLIENT;
    this.#count[mode] += 1;
    this.#byClient.set(client, ofClient + 1);
    return () => this.#leaveAs(client, mode);
  }

  /** One function for all readers of a mode whose clients are not counted. */
  readonly #leave: Readonly<Record<LiveMode, () => void>> = {
    sse: () => this.#left("sse"),
    "long-poll": () => this.#left("long-poll"),
  };

  #tooMany(): Problem {
    if (!this.#hasWarned) this.#log.warn("too many live readers: others are refused", { maxLiveReaders: this.limit });
    this.#hasWarned = true;
    return TOO_MANY;
  }

  /** Where half of them have left, the next refusal is news again. */
  #left(mode: LiveMode): void {
    this.#count[mode] -= 1;
    if (this.#hasWarned && this.size < this.limit / 2) this.#hasWarned = false;
  }

  #leaveAs(client: string, mode: LiveMode): void {
    this.#leave[mode]();
    const ofClient = this.#byClient.get(client) ?? 0;
    if (ofClient > 1) this.#byClient.set(client, ofClient - 1);
    else this.#byClient.delete(client);
  }
}
