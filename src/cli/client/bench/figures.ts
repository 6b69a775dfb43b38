// What a benchmark counts: answers, bytes and how long each answer took.

import { MiB } from "../../../options/spec.js";

/** The figures of one phase. */
export interface Figures {
  readonly count: number;
  readonly bytes: number;
  readonly seconds: number;
  readonly perSecond: number;
  readonly mebibytesPerSecond: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Answers a second, for each slice of the phase. */
  readonly slices: readonly number[];
}

/** Each bucket of times ends at so much more than the one before. */
const STEP = 1.02;
const SMALLEST_MS = 0.01;

/** Counts answers in bounded memory: times are as precise as their bucket, 2 %. */
export class Tally {
  readonly #beganMs: number;
  readonly #sliceMs: number;
  readonly #buckets: number[] = [];
  readonly #slices: number[] = [];
  #bytes = 0;
  #count = 0;
  #maxMs = 0;

  constructor(beganMs: number, sliceMs: number) {
    this.#beganMs = beganMs;
    this.#sliceMs = sliceMs;
  }

  /** Bytes so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts an answer that came at `nowMs` and took `tookMs`. */
  add(nowMs: number, tookMs: number, bytes: number): void {
    const bucket = Math.max(0, Math.ceil(Math.log(tookMs / SMALLEST_MS) / Math.log(STEP)));
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    const slice = Math.max(0, Math.floor((nowMs - this.#beganMs) / this.#sliceMs));
    this.#slices[slice] = (this.#slices[slice] ?? 0) + 1;
    this.#bytes += bytes;
    this.#count += 1;
    this.#maxMs = Math.max(this.#maxMs, tookMs);
  }

  /** All figures, as of `nowMs`. */
  figures(nowMs: number): Figures {
    const seconds = Math.max(0.001, (nowMs - this.#beganMs) / 1000);
    const whole = Math.max(1, Math.floor((nowMs - this.#beganMs) / this.#sliceMs));
    const slices = Array.from({ length: whole }, (_, at) => ((this.#slices[at] ?? 0) * 1000) / this.#sliceMs);
    return {
      count: this.#count,
      bytes: this.#bytes,
      seconds,
      perSecond: this.#count / seconds,
      mebibytesPerSecond: this.#bytes / MiB / seconds,
      p50Ms: this.#below(0.5),
      p90Ms: this.#below(0.9),
      p99Ms: this.#below(0.99),
      maxMs: this.#maxMs,
      slices,
    };
  }

  /** A time that so large a share of the answers took at most. */
  #below(share: number): number {
    let seen = 0;
    for (const [bucket, count] of this.#buckets.entries()) {
      seen += count ?? 0;
      if (seen > 0 && seen >= share * this.#count) return Math.min(this.#maxMs, SMALLEST_MS * STEP ** bucket);
    }
    return 0;
  }
}
