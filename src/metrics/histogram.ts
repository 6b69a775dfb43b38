/** Counts values by fixed bounds. Observing one allocates nothing. */
export class Histogram {
  /** The upper bounds, inclusive, in rising order. */
  readonly bounds: readonly number[];
  /** One for each bound, and one for what is above them all. */
  readonly #counts: Float64Array;
  #sum = 0;
  #count = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  /** The sum of all values. */
  get sum(): number {
    return this.#sum;
  }

  /** How many values there were. */
  get count(): number {
    return this.#count;
  }

  /** How many values lay above the bound before the one at `index`, and not above that. */
  countAt(index: number): number {
    return this.#counts[index] ?? 0;
  }

  /** Counts a value; most lie near the first bounds, so they are compared in order. */
  observe(value: number): void {
    const { bounds } = this;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? Infinity)) at += 1;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
    this.#count += 1;
  }
}

/** Bounds for what takes from a tenth of a millisecond to ten seconds, in seconds. */
export const DURATION_BOUNDS: readonly number[] = [
  0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** Bounds for what takes from ten milliseconds to five minutes, in seconds. */
export const LONG_DURATION_BOUNDS: readonly number[] = [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300];

/** Bounds for how many of something there are at a time. */
export const COUNT_BOUNDS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
