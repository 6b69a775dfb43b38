import assert from "node:assert/strict";
import { test } from "node:test";
import { together } from "./together.js";

/** A load whose answers took each of the milliseconds between two as often as each other. */
const load = (answers: number, fromMs: number, toMs: number) => ({
  requestsPerSecond: answers,
  answers,
  thousandthsMs: Array.from({ length: 1000 }, (_, index) => fromMs + ((toMs - fromMs) * (index + 1)) / 1000),
});

test("the p99 of loads together is that of all their answers, not the mean of theirs", () => {
  // The one slow second has a fiftieth of the answers: half of them are the slowest hundredth.
  const { rate, p99Ms } = together([load(1000, 10, 30), load(24_500, 0, 1), load(24_500, 0, 1)]);
  assert.equal(rate, 50_000 / 3);
  assert.ok(Math.abs(p99Ms - 20) < 0.1, `${p99Ms}`);
});

test("one load is what it is", () => {
  assert.equal(together([load(500, 0, 10)]).p99Ms, 9.9);
});
