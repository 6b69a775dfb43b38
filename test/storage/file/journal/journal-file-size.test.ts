import assert from "node:assert/strict";
import { test } from "node:test";
import { journalSizeBytes, limitBytes, SMALL_JOURNAL_BYTES } from "../../../../src/storage/file/journal/journal-file.js";

const KIB = 1024;
const MIB = 1024 * 1024;

const sizes: readonly [fileMib: number, streams: number, isBehind: boolean, sizeMib: number][] = [
  [64, 1, false, 8],
  [64, 32, false, 8],
  [64, 100, false, 25],
  [64, 1000, false, 64],
  [64, 1, true, 64],
  [2, 1, false, 2],
  [2, 1000, true, 2],
];

for (const [fileMib, streams, isBehind, sizeMib] of sizes)
  test(`${sizeMib} MiB of at most ${fileMib}, with ${streams} streams, checkpoints ${isBehind ? "behind" : "in time"}`, () => {
    assert.equal(journalSizeBytes({ fileBytes: fileMib * MIB, smallBytes: SMALL_JOURNAL_BYTES, streams, isBehind }), sizeMib * MIB);
  });

test("a file is full where one more frame fits, and sooner by what went past it and what is for deletions", () => {
  assert.equal(limitBytes(64 * MIB, MIB, 0), 63 * MIB - 128 * KIB);
  assert.equal(limitBytes(2 * MIB, MIB, 0), 1.5 * MIB - 128 * KIB);
  assert.equal(limitBytes(64 * KIB, MIB, 0), 44 * KIB);
  assert.equal(limitBytes(64 * MIB, MIB, 32 * MIB), 61 * MIB - 128 * KIB);
});
