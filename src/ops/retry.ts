import type { Clock, Timer } from "./clock.js";

/**
 * The next try of what failed and may succeed later. Its timer alone says when that is. Who compares the time as well
 * waits for ever where the two differ: a timer may fire a millisecond early by the wall clock, and that clock may be
 * set back.
 */
export class Retry {
  readonly #clock: Pick<Clock, "after">;
  #timer: Timer | null = null;
  #runs: (() => void)[] = [];

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Whether a try is still to come. */
  get isPending(): boolean {
    return this.#timer !== null;
  }

  /** Calls `run` with the next try: `delayMs` from now, or when the one comes that is pending already. */
  after(delayMs: number, run: () => void): void {
    this.#runs.push(run);
    this.#timer ??= this.#clock.after(delayMs, () => this.now());
  }

  /** Resolves with the next try, as {@link after} calls. */
  wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.after(delayMs, resolve));
  }

  /** The pending try comes at once; does nothing where none is. */
  now(): void {
    const runs = this.#runs;
    this.cancel();
    for (const run of runs) run();
  }

  /** The pending try never comes: what waits for it is not called. */
  cancel(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#runs = [];
  }
}
