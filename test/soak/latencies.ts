/** Upper bounds in milliseconds, each 5% above the one before: from 0.01 ms to more than a minute. */
const STEP = 1.05;
const LOWEST_MS = 0.01;
const BUCKETS = 330;

/** Counts of latencies, of which any quantile can be told to within 5%: an hour of them takes no more than a minute. */
export class Latencies {
  readonly #counts = new Float64Array(BUCKETS);
  count = 0;

  add(ms: number): void {
    const at = ms <= LOWEST_MS ? 0 : Math.min(BUCKETS - 1, Math.ceil(Math.log(ms / LOWEST_MS) / Math.log(STEP)));
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.count += 1;
  }

  /** Adds what another has counted. */
  merge(other: Latencies): void {
    for (const [at, count] of other.#counts.entries()) this.#counts[at] = (this.#counts[at] ?? 0) + count;
    this.count += other.count;
  }

  /** The latency that a share of `quantile` is at or below; `NaN` where nothing was counted. */
  at(quantile: number): number {
    let left = this.count * quantile;
    for (const [at, count] of this.#counts.entries()) {
      left -= count;
      if (count > 0 && left <= 0) return LOWEST_MS * STEP ** at;
    }
    return NaN;
  }
}
