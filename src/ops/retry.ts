import type { Clock, Timer } from "./clock.js";

/**
 * The next attempt at an operation that failed and may succeed later. Only its timer decides when. Comparing the time
 * as well could wait for ever: a timer may fire a millisecond early by the wall clock, and that clock may be set back.
 */
export class Retry {
  readonly #clock: Pick<Clock, "after">;
  #timer: Timer | null = null;
  #runs: (() => void)[] = [];

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Whether an attempt is pending. */
  get isPending(): boolean {
    return this.#timer !== null;
  }

  /** Calls `run` with the next attempt: `delayMs` from now, or with the one that is already pending. */
  after(delayMs: number, run: () => void): void {
    this.#runs.push(run);
    this.#timer ??= this.#clock.after(delayMs, () => this.now());
  }

  /** Resolves with the next attempt, which {@link after} describes. */
  wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.after(delayMs, resolve));
  }

  /** Makes the pending attempt at once; does nothing when none is pending. */
  now(): void {
    const runs = this.#runs;
    this.cancel();
    for (const run of runs) run();
  }

  /** Cancels the pending attempt: what waits for it is not called. */
  cancel(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#runs = [];
  }
}
