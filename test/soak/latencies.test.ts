import assert from "node:assert/strict";
import { test } from "node:test";
import { Latencies } from "./latencies.js";

test("quantiles are right to within a twentieth", () => {
  const latencies = new Latencies();
  for (let ms = 1; ms <= 1000; ms += 1) latencies.add(ms);
  for (const quantile of [0.5, 0.99, 1]) {
    const ratio = latencies.at(quantile) / (1000 * quantile);
    assert.ok(ratio >= 1 && ratio < 1.05, `${quantile}: ${ratio}`);
  }
});

test("two counts make one", () => {
  const [quick, slow] = [new Latencies(), new Latencies()];
  for (let count = 0; count < 99; count += 1) quick.add(1);
  slow.add(500_000);
  quick.merge(slow);
  assert.equal(quick.count, 100);
  assert.ok(quick.at(0.99) < 1.05 && quick.at(1) > 50_000);
});

test("nothing counted says nothing", () => assert.ok(Number.isNaN(new Latencies().at(0.5))));
