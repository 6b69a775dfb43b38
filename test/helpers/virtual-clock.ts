import type { Clock, Timer } from "../../src/ops/clock.js";

/** A timer that has not fired. */
interface Pending {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** Turns of the event loop without a timer, after which nothing is left: what gives others their turns needs some. */
const MAX_IDLE_TURNS = 1000;

/** A clock that jumps to the next timer whenever nothing else is left to do: hours pass in no time, always alike. */
export class VirtualClock implements Clock {
  readonly #pending = new Set<Pending>();
  #nowMs: number;
  #order = 0;

  constructor(nowMs = 1_000_000) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): Timer {
    const pending = { atMs: this.#nowMs + delayMs, order: (this.#order += 1), run };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** Resolves after `delayMs` of this clock. */
  pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.after(delayMs, resolve));
  }

  /** Lets time pass until `work` is done; rejects where that waits for nothing that is to come. */
  async through<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const over = (): void => void (isOver = true);
    work.then(over, over);
    for (let idleTurns = 0; ;) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (isOver) return work;
      idleTurns = this.#fireNext() ? 0 : idleTurns + 1;
      if (idleTurns > MAX_IDLE_TURNS) throw new Error(`nothing is left to happen at ${this.#nowMs} ms`);
    }
  }

  #fireNext(): boolean {
    let next: Pending | null = null;
    for (const one of this.#pending) if (next === null || isBefore(one, next)) next = one;
    if (next === null) return false;
    this.#pending.delete(next);
    this.#nowMs = Math.max(this.#nowMs, next.atMs);
    next.run();
    return true;
  }
}

function isBefore(one: Pending, other: Pending): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}
