import { stopwatchMs } from "./clock.js";

/** Lets the event loop take what else is there, before long work goes on. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Lets a few of many jobs run at a time; the others wait for their turn, in order. */
export class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** `atOnce` is at least 1. */
  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  async run<T>(job: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await job();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

/** How long names are looked at in one turn of the event loop, by all who do so, in milliseconds. */
const MAX_TURN_MS = 4;

/** A part of each turn of the event loop, for all who match names by patterns of their callers' choice. */
class SharedTurn {
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
    do await nextTurn();
    while (this.isSpent);
  }
}

/** The one of this process, as it has one event loop. */
export const TURN_OF_NAMES: SharedTurn = new SharedTurn();
