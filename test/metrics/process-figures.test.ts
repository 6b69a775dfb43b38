import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLoopMeter, processFigures } from "../../src/metrics/process-figures.js";

test("the lag of the event loop is measured from the first question on, and is never below 0", () => {
  const meter = new EventLoopMeter();
  assert.deepEqual(meter.take(), { mean: 0, p99: 0, max: 0 });
  for (const value of Object.values(meter.take())) assert.ok(value >= 0 && Number.isFinite(value));
  meter.stop();
});

test("the process has a beginning, and has used time and memory", () => {
  const figures = processFigures();
  for (const value of Object.values(figures)) assert.ok(Number.isFinite(value) && value >= 0);
  assert.ok(figures.startSeconds > 1.5e9 && figures.residentBytes > figures.heapUsedBytes);
});
