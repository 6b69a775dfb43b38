/** Fewer entries than this are not worth a batch of their own. */
const MIN_SHARE = 8;

/**
 * How many of the `queued` entries the next batch takes, when `last` are answered meanwhile: as many, and half of what
 * is above that. Clients that wait for their answers would otherwise all come to be in every second batch, and while
 * that is on its way to the disk there is nothing to do; so they come to be in both alike.
 */
export function shareOf(queued: number, last: number): number {
  const excess = queued - last;
  return excess > MIN_SHARE ? last + Math.ceil(excess / 2) : queued;
}
