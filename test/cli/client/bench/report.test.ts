import assert from "node:assert/strict";
import test from "node:test";
import type { Figures } from "../../../../src/cli/client/bench/figures.js";
import { chartOf, tableOf } from "../../../../src/cli/client/bench/report.js";

const FIGURES: Figures = {
  count: 1_234_567,
  bytes: 0,
  seconds: 1,
  perSecond: 1234.5,
  mebibytesPerSecond: 1.25,
  p50Ms: 0.5,
  p90Ms: 1,
  p99Ms: 12.4,
  maxMs: 100,
  slices: [0, 4, 8],
};

test("the table has columns as wide as they need to be", () => {
  assert.equal(
    tableOf({ append: FIGURES }),
    [
      "            count  per second  MiB/s  p50 ms  p90 ms  p99 ms  max ms",
      "append  1,234,567       1,235    1.3    0.50    1.00      12     100",
      "",
    ].join("\n"),
  );
});

test("the chart goes from nothing to the largest slice, and has room for 60", () => {
  assert.equal(chartOf("appends", FIGURES, false), "appends a second, over time  ▁▅█  at most 8\n");
  assert.match(chartOf("appends", FIGURES, true), /\u001b\[36m▁▅█\u001b\[0m/);
  const slices = Array.from({ length: 600 }, (_, at) => at);
  assert.match(chartOf("appends", { ...FIGURES, slices }, false), / {2}[▁▂▃▄▅▆▇█]{60} {2}at most 595\n$/);
});
