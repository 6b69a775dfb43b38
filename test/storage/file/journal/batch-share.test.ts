import assert from "node:assert/strict";
import { test } from "node:test";
import { shareOf } from "../../../../src/storage/file/journal/batch-share.js";

test("a batch takes all when it is hardly longer than the last", () => {
  for (const [queued, last] of [
    [1, 0],
    [8, 0],
    [40, 32],
    [3, 61],
    [1000, 992],
  ] as const)
    assert.equal(shareOf(queued, last), queued);
});

test("a batch takes half of what the last one did not have", () => {
  for (const [queued, last, share] of [
    [63, 1, 32],
    [9, 0, 5],
    [64, 0, 32],
    [100, 50, 75],
  ] as const)
    assert.equal(shareOf(queued, last), share);
});

test("clients that wait for their answers come to be in both batches alike", () => {
  const clients = 64;
  let last = 1;
  for (let round = 0; round < 5; round += 1) last = shareOf(clients - last, last);
  assert.ok(Math.abs(last - clients / 2) <= 4, `${last} of ${clients}`);
});
