import type { Timer } from "../../src/ops/clock.js";
import { ManualClock } from "./manual-clock.js";

/** A clock whose timers do not keep to the time that it tells: they fire early, or late. */
export class SkewedClock extends ManualClock {
  readonly #skewMs: number;

  /** Each timer fires `skewMs` later than it is asked to, and so much earlier where that is negative; never before it is asked. */
  constructor(skewMs: number, nowMs?: number) {
    super(nowMs);
    this.#skewMs = skewMs;
  }

  override after(delayMs: number, run: () => void): Timer {
    return super.after(Math.max(0, delayMs + this.#skewMs), run);
  }
}

/** Timers as they come: a millisecond early, as Node's do now and then, at once by a clock that stands still, and late. */
export const SKEWS = [
  { name: "a millisecond early", skewMs: -1 },
  { name: "by a wall clock that stands still", skewMs: -Infinity },
  { name: "late", skewMs: 70 },
] as const;
