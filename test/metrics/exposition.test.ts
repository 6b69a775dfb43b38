import assert from "node:assert/strict";
import { test } from "node:test";
import { Exposition } from "../../src/metrics/exposition.js";
import { Histogram } from "../../src/metrics/histogram.js";

test("a family has its help, its type and a line for each series", () => {
  const page = new Exposition();
  page.counter("a_total", "One\nline \\ of help.", [
    { labels: { code: "200", path: 'quoted "x" \\ \n' }, value: 3 },
    { labels: {}, value: 0.5 },
  ]);
  page.gauge("b", "Two.", Infinity);
  assert.equal(
    page.text,
    "# HELP a_total One\\nline \\\\ of help.\n# TYPE a_total counter\n" +
      'a_total{code="200",path="quoted \\"x\\" \\\\ \\n"} 3\na_total 0.5\n# HELP b Two.\n# TYPE b gauge\nb +Inf\n',
  );
});

test("a histogram has buckets that count all below, a sum and a count", () => {
  const histogram = new Histogram([1, 2]);
  for (const value of [0.5, 1, 1.5, 7]) histogram.observe(value);
  const page = new Exposition();
  page.histogram("h", "H.", [{ labels: { kind: "x" }, histogram }]);
  assert.deepEqual(page.text.split("\n").slice(2), [
    'h_bucket{kind="x",le="1"} 2',
    'h_bucket{kind="x",le="2"} 3',
    'h_bucket{kind="x",le="+Inf"} 4',
    'h_sum{kind="x"} 10',
    'h_count{kind="x"} 4',
    "",
  ]);
});
