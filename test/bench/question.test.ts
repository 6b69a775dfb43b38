import assert from "node:assert/strict";
import { test } from "node:test";
import { absolute, compared, isReached } from "./question.js";

test("a compared figure is judged by its ratio", () => {
  const at = (ratio: number): boolean => isReached(compared("", "reads/s", { ours: 1, yardstick: 1, ratio }, 0.8));
  assert.deepEqual([at(0.79), at(0.8), at(2)], [false, true, true]);
});

test("an absolute figure is judged by itself, and one that is only reported is always what it should be", () => {
  const at = (ours: number, atMost: number | null): boolean => isReached(absolute("", "MiB", ours, atMost));
  assert.deepEqual([at(160, 160), at(160.1, 160), at(1e9, null)], [true, false, true]);
});

test("a figure that was not measured is no goal reached", () => {
  assert.equal(isReached(absolute("", "MiB", NaN, 160)), false);
});
