import assert from "node:assert/strict";
import { test } from "node:test";
import { KIND, RequestFigures } from "../../src/metrics/request-figures.js";

test("requests count by operation and status, and those whose client left as left", () => {
  const figures = new RequestFigures();
  figures.answered(KIND.append, 204);
  figures.answered(KIND.append, 204);
  figures.answered(KIND.read, 0);
  assert.deepEqual(
    [...figures.requests()],
    [
      { labels: { operation: "append", code: "204" }, value: 2 },
      { labels: { operation: "read", code: "left" }, value: 1 },
    ],
  );
});

test("times are kept for the operations that came", () => {
  const figures = new RequestFigures();
  figures.took(KIND.sse, 0.25);
  const [only, ...others] = [...figures.durations()];
  assert.deepEqual([only?.labels, only?.histogram.sum, others.length], [{ operation: "sse" }, 0.25, 0]);
});

test("every code that can come has a series, whether it came or not", () => {
  const figures = new RequestFigures();
  figures.refused("b");
  assert.deepEqual(
    [...figures.refusals(["a", "b"])],
    [
      { labels: { code: "a" }, value: 0 },
      { labels: { code: "b" }, value: 1 },
    ],
  );
});
