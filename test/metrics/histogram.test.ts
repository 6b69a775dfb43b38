import assert from "node:assert/strict";
import { test } from "node:test";
import { COUNT_BOUNDS, DURATION_BOUNDS, Histogram, LONG_DURATION_BOUNDS } from "../../src/metrics/histogram.js";

test("a value at a bound counts below it, and one above all bounds counts nowhere else", () => {
  const histogram = new Histogram([1, 10]);
  for (const value of [0, 1, 1.5, 10, 11]) histogram.observe(value);
  assert.deepEqual(
    [0, 1, 2, 3].map((at) => histogram.countAt(at)),
    [2, 2, 1, 0],
  );
  assert.deepEqual([histogram.count, histogram.sum], [5, 23.5]);
});

test("the bounds rise", () => {
  for (const bounds of [COUNT_BOUNDS, DURATION_BOUNDS, LONG_DURATION_BOUNDS])
    assert.deepEqual(
      [...bounds].sort((a, b) => a - b),
      bounds,
    );
});
