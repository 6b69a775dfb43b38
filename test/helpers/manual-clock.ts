import type { Clock, Timer } from "../../src/ops/clock.js";

interface Pending {
  readonly dueMs: number;
  readonly run: () => void;
}

/** A clock that stands still until a test turns it. */
export class ManualClock implements Clock {
  #nowMs: number;
  readonly #pending = new Set<Pending>();

  constructor(nowMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = nowMs;
  }

  /** Calls of `after` that have not run. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): Timer {
    const pending = { dueMs: this.#nowMs + Math.max(0, delayMs), run };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** Moves on by `ms`, and runs what falls due on the way, in order, each at its own time. */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (let next = this.#earliest(untilMs); next !== null; next = this.#earliest(untilMs)) {
      this.#pending.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.run();
    }
    this.#nowMs = untilMs;
  }

  #earliest(untilMs: number): Pending | null {
    let earliest: Pending | null = null;
    for (const pending of this.#pending) {
      if (pending.dueMs <= untilMs && (earliest === null || pending.dueMs < earliest.dueMs)) earliest = pending;
    }
    return earliest;
  }
}
