import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesText, numberText, parseMetrics, secondsText, sumOf } from "../../src/page/figures.js";

test("figures are written for people", () => {
  assert.deepEqual([0, 49.925, 1023, 1024, 15 * 1024, 1024 ** 3].map(bytesText), ["0 B", "50 B", "1023 B", "1.0 KiB", "15 KiB", "1.0 GiB"]);
  assert.deepEqual([0, 1.25, 99.9, 12_345, 2_500_000].map(numberText), ["0", "1.3", "99.9", "12.3 k", "2.5 M"]);
  assert.deepEqual([0.0000042, 0.0042, 4.2].map(secondsText), ["4 µs", "4.2 ms", "4.2 s"]);
});

test("samples are read from a report", () => {
  const samples = parseMetrics('# HELP a b\na_total{operation="append",code="204"} 3\na_total{operation="read",code="200"} 4\nb 1.5e3\n');
  assert.deepEqual(
    [sumOf(samples, "a_total"), sumOf(samples, "a_total", 'operation="append"'), sumOf(samples, "b"), sumOf(samples, "c")],
    [7, 3, 1500, null],
  );
});
