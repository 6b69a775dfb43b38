import type { StoredStream } from "../../src/storage/storage.js";
import type { RetentionLimits } from "../../src/stream/loaded/retention.js";
import { must, type Incarnation } from "./model.js";

/**
 * Where a stream begins is where it has begun or later, and no later than the limits of retention, or somebody who asked
 * for it, let it: whatever the limits keep is there.
 */
export function observeBeginning(
  incarnation: Incarnation,
  { earliest, state }: StoredStream,
  limits: RetentionLimits,
  nowMs: number,
): void {
  const { tag, operations } = incarnation;
  incarnation.observeEarliest(earliest);
  must(earliest <= state.tail, () => `${tag} begins at ${earliest}, behind its end ${state.tail}`);
  if (earliest <= incarnation.droppableTo || state.tail - earliest >= limits.maxBytes) return;
  for (const { id, from, stored, sentMs } of operations) {
    const isDropped = from !== null && from < earliest && stored.length > 0;
    must(
      !isDropped || nowMs - sentMs > limits.maxAgeMs,
      () => `${tag}: operation ${id} at ${from} was dropped after ${nowMs - sentMs} ms, it begins at ${earliest} and ends at ${state.tail}`,
    );
  }
}
