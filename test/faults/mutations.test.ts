import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runHistory } from "./histories.js";
import { MUTANTS } from "./mutants/all.js";
import { mutated, MutatedTree } from "./mutated-tree.js";
import * as mutations from "./mutations.js";

const MAX_SEEDS = 1000;

/** The first seed that finds the fault, `null` when none does. */
async function findingSeed(mutation: mutations.Mutation): Promise<number | null> {
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
  const faults: readonly (readonly [string, mutations.Mutation])[] = [
    ["nothing is synced", mutations.withoutSync],
    ["directories are not synced", mutations.withoutDirectorySync],
    ["the sidecar is renamed without its sync", mutations.withoutSidecarSync],
    ["the sidecar is replaced before the segment is synced", mutations.withSidecarBeforeSegment],
    ["a journal file is freed before the files that take its place are synced", mutations.withJournalFreedFirst],
    ["the CRC of journal frames is not checked", mutations.withoutFrameCrc],
    ["the first record of a torn frame is taken", mutations.withTornRecords],
    ["the CRC of segments is not checked", mutations.withoutSegmentCrc],
  ];
  for (const [fault, mutation] of faults) {
    test(fault, async (context) => {
      const seed = await findingSeed(mutation);
      assert.ok(seed !== null, `not found within ${MAX_SEEDS} seeds`);
      // It is the fault that it finds: without it the same history holds.
      await runHistory(seed);
      context.diagnostic(`found by seed ${seed}`);
    });
  }
});

/** `npm run simulate -- --mutants` looks for all; this is looked for in each run of the tests. */
const ALWAYS = new Set(["a duplicate is answered before its original is durable"]);

describe("the simulation finds a line that is wrong", { concurrency: 2 }, () => {
  test("each has its place in the server", () => {
    for (const mutant of MUTANTS) assert.notEqual(mutated(mutant), "");
  });

  for (const mutant of MUTANTS.filter(({ fault }) => ALWAYS.has(fault))) {
    test(mutant.fault, async (context) => {
      const tree = new MutatedTree(mutant);
      try {
        // The seed that found it last; after changes of the histories it may be another.
        const found = (await tree.findingSeed(mutant.seed, 1)) ?? (await tree.findingSeed(1, MAX_SEEDS));
        assert.ok(found !== null, `not found within ${MAX_SEEDS} seeds`);
        await runHistory(found.seed);
        context.diagnostic(`found by seed ${found.seed}: ${found.says.split("\n", 1).join()}`);
      } finally {
        tree.remove();
      }
    });
  }
});
