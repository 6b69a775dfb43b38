import type { Clock, Timer } from "../../ops/clock.js";
import type { RetentionLimits, Storage, StoredStream } from "../../storage/storage.js";

export type { RetentionLimits } from "../../storage/storage.js";

/** Keeps everything. */
export const KEEP_ALL: RetentionLimits = { maxBytes: Infinity, maxAgeMs: Infinity };

/** Segments within a limit. Only whole ones are dropped, so at most an eighth more than the limit is kept. */
const SEGMENTS_PER_LIMIT = 8;
const MIN_SEGMENT_BYTES = 4096;

/**
 * The size and the age at which a stream begins a new segment, small enough for the limits to work. `segmentBytes` is
 * the size without limits.
 */
export function segmentRollOf(
  limits: RetentionLimits,
  segmentBytes: number,
): { readonly segmentBytes: number; readonly segmentAgeMs: number } {
  const sizedBytes = Math.max(MIN_SEGMENT_BYTES, Math.floor(limits.maxBytes / SEGMENTS_PER_LIMIT));
  return { segmentBytes: Math.min(segmentBytes, sizedBytes), segmentAgeMs: limits.maxAgeMs / SEGMENTS_PER_LIMIT };
}

/** Whether nothing is ever dropped. */
export function keepsAll({ maxBytes, maxAgeMs }: RetentionLimits): boolean {
  return maxBytes === Infinity && maxAgeMs === Infinity;
}

/** Drops the beginning of a stream beyond what `limits` keep. */
export function trimExcess(storage: Storage, stored: StoredStream, limits: RetentionLimits, clock: Clock): void {
  if (keepsAll(limits)) return;
  storage.trim(stored, limits, clock.nowMs());
}

/** The bounds of the pause between two rounds, which is a quarter of a segment's age. */
const MIN_ROUND_MS = 250;
const MAX_ROUND_MS = 30_000;

/** Calls `round` often enough to keep the limit of age; never when there is none. */
export class RetentionTimer {
  readonly #clock: Clock;
  readonly #round: () => void;
  readonly #pauseMs: number;
  #timer: Timer | null = null;

  constructor(clock: Clock, limits: RetentionLimits, round: () => void) {
    this.#clock = clock;
    this.#round = round;
    this.#pauseMs = Math.max(MIN_ROUND_MS, Math.min(limits.maxAgeMs / SEGMENTS_PER_LIMIT / 4, MAX_ROUND_MS));
    if (limits.maxAgeMs === Infinity) this.#pauseMs = Infinity;
  }

  start(): void {
    if (this.#pauseMs === Infinity) return;
    this.#timer = this.#clock.after(this.#pauseMs, () => {
      this.#round();
      this.start();
    });
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }
}
