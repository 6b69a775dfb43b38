import assert from "node:assert/strict";
import test from "node:test";
import { Tally } from "../../../../src/cli/client/bench/figures.js";

test("times are as precise as their bucket, and the largest is exact", () => {
  const tally = new Tally(0, 1000);
  for (let ms = 1; ms <= 1000; ms += 1) tally.add(ms, ms, 10);
  const { count, bytes, p50Ms, p90Ms, p99Ms, maxMs } = tally.figures(2000);
  assert.deepEqual([count, bytes, maxMs], [1000, 10_000, 1000]);
  for (const [found, exact] of [
    [p50Ms, 500],
    [p90Ms, 900],
    [p99Ms, 990],
  ] as const)
    assert.ok(found >= exact && found <= exact * 1.02, `${found} is about ${exact}`);
});

test("each slice has its own rate, also those without an answer", () => {
  const tally = new Tally(1000, 500);
  for (const nowMs of [1000, 1499, 2000]) tally.add(nowMs, 1, 1);
  assert.deepEqual(tally.figures(2600).slices, [4, 0, 2]);
});

test("nothing at all is 0", () => {
  const { p50Ms, perSecond, slices } = new Tally(0, 100).figures(0);
  assert.deepEqual([p50Ms, perSecond, slices], [0, 0, [0]]);
});
