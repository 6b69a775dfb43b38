/** Tells the time; tests replace it. */
export interface Clock {
  /** Milliseconds since 1970 UTC; never goes back while the process lives. */
  nowMs(): number;
  /** Calls `run` once after at least `delayMs`. The timer never keeps the process alive. */
  after(delayMs: number, run: () => void): Timer;
}

/** A pending call of {@link Clock.after}. */
export interface Timer {
  /** Cancels the call; does nothing when it has already run. */
  cancel(): void;
}

/** Longest delay that the platform's timers keep (2^31 - 1 ms); a longer one would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** The system's clock, held to its highest reading so that a step back never un-expires a stream. */
export function systemClock(): Clock {
  let highestMs = 0;
  return {
    nowMs() {
      const readingMs = Date.now();
      if (readingMs > highestMs) highestMs = readingMs;
      return highestMs;
    },
    after(delayMs, run) {
      const handle = setTimeout(run, Math.min(delayMs, MAX_DELAY_MS));
      handle.unref();
      return new SystemTimer(handle);
    },
  };
}

/**
 * Milliseconds with fractions from some moment on; never goes back, and takes half the time of `performance.now`: each
 * request asks twice.
 */
export function stopwatchMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

/** A class, because each waiting reader has one: a closure would take three times the memory. */
class SystemTimer implements Timer {
  readonly #handle: NodeJS.Timeout;

  constructor(handle: NodeJS.Timeout) {
    this.#handle = handle;
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }
}
