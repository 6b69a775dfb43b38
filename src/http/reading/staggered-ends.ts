// Ends live reads one after the other, so that their clients do not come back all at once.

import type { Clock } from "../../ops/clock.js";

/** Ends a live read. Its client is told to wait for `comeBackMs`, as far as it can be told; `null` says nothing. */
export type EndRead = (comeBackMs: number | null) => void;

/** The pause between two groups. */
const STEP_MS = 20;
/** Reads that may end together. */
const MAX_TOGETHER = 16;
/** How much time each read adds to the window. */
const MS_PER_READ = 1;
/** What of the time for a stop the ends may take: the last ones need some, too. */
const SHARE_OF_TIMEOUT = 0.8;
/** The shortest pause before a client comes back. */
const MIN_COME_BACK_MS = 100;

/** Over how many milliseconds so many reads are ended by a stop that may take `timeoutMs`. */
export function endsWindowMs(reads: number, timeoutMs: number): number {
  return reads <= MAX_TOGETHER ? 0 : Math.min(reads * MS_PER_READ, timeoutMs * SHARE_OF_TIMEOUT);
}

/** What ends of live reads are timed with. */
export interface StaggeringParts {
  readonly clock: Pick<Clock, "after">;
  /** Gives numbers in [0, 1). */
  readonly random: () => number;
}

/**
 * Ends all `reads` within {@link endsWindowMs}, evenly, the first ones at once. Where they are many, each client is
 * told to come back after a time of its own, from 100 ms to that window longer: those that find no server would
 * otherwise ask in step.
 */
export function staggerEnds({ clock, random }: StaggeringParts, reads: readonly EndRead[], timeoutMs: number): void {
  const windowMs = endsWindowMs(reads.length, timeoutMs);
  const perStep = windowMs === 0 ? reads.length : Math.ceil((reads.length * STEP_MS) / windowMs);
  let at = 0;
  const comeBackMs = (): number | null => (windowMs === 0 ? null : MIN_COME_BACK_MS + Math.round(random() * windowMs));
  const step = (): void => {
    for (const end of reads.slice(at, at + perStep)) end(comeBackMs());
    at += perStep;
    if (at < reads.length) clock.after(STEP_MS, step);
  };
  step();
}
