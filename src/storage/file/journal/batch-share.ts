/** Fewer entries than this are not worth a batch of their own. */
const MIN_SHARE = 8;

/**
 * How many of the `queued` entries the next batch takes while `last` are answered: as many, and half of the rest. If it
 * took all, waiting clients would gather in every second batch, with nothing to do while that is synced.
 */
export function shareOf(queued: number, last: number): number {
  const excess = queued - last;
  return excess > MIN_SHARE ? last + Math.ceil(excess / 2) : queued;
}
