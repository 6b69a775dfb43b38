import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runHistory } from "./histories.js";
import { withoutFrameCrc, withoutSync, withSidecarBeforeSegment, type Mutation } from "./mutations.js";

const MAX_SEEDS = 1000;

/** The first seed that finds the fault, `null` when none does. */
async function findingSeed(mutation: Mutation): Promise<number | null> {
  for (let seed = 1; seed <= MAX_SEEDS; seed += 1) {
    try {
      await runHistory(seed, { wrap: mutation });
    } catch {
      // Whatever it says: with the fault it must not hold.
      return seed;
    }
  }
  return null;
}

describe("the simulation finds a fault that is put in", () => {
  const mutations: readonly (readonly [string, Mutation])[] = [
    ["nothing is synced", withoutSync],
    ["the CRC of journal frames is not checked", withoutFrameCrc],
    ["the sidecar is replaced before the segment is synced", withSidecarBeforeSegment],
  ];
  for (const [fault, mutation] of mutations) {
    test(fault, async (context) => {
      const seed = await findingSeed(mutation);
      assert.ok(seed !== null, `not found within ${MAX_SEEDS} seeds`);
      // It is the fault that it finds: without it the same history holds.
      await runHistory(seed);
      context.diagnostic(`found by seed ${seed}`);
    });
  }
});
