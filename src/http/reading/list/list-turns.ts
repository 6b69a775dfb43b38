import { stopwatchMs } from "../../../ops/clock.js";

/** How long names are looked at in one turn of the event loop, by all who do so, in milliseconds. */
const MAX_TURN_MS = 4;

/** Names are matched by patterns of their callers' choice: all who do share a part of each turn of the event loop. */
class ListTurns {
  /** When somebody first looked in this turn; `null` before. */
  #begunAtMs: number | null = null;

  /** Whether this turn has nothing left for it. */
  get isSpent(): boolean {
    if (this.#begunAtMs !== null) return stopwatchMs() - this.#begunAtMs >= MAX_TURN_MS;
    this.#begunAtMs = stopwatchMs();
    setImmediate(() => (this.#begunAtMs = null));
    return false;
  }

  /** Waits for a turn that has something left. */
  async next(): Promise<void> {
    do await new Promise<void>((resolve) => setImmediate(resolve));
    while (this.isSpent);
  }
}

/** Those of this process, as it has one event loop. */
export const LIST_TURNS: ListTurns = new ListTurns();
