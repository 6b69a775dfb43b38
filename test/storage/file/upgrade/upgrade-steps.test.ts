import assert from "node:assert/strict";
import { test } from "node:test";
import { FORMAT } from "../../../../src/storage/file/format/sidecar.js";
import { stepsFrom, UPGRADE_TARGET, type UpgradeStep } from "../../../../src/storage/file/upgrade/upgrade-steps.js";

function step(from: number, to: number): UpgradeStep {
  return { from, to, what: "", changes: () => (async function* () {})(), run: async () => undefined };
}

test("the way to a format is its steps in order, and there is none where one is missing", () => {
  const steps = [step(3, 4), step(1, 2), step(2, 3)];
  const way = stepsFrom(1, { format: 4, steps });
  assert.deepEqual(
    way?.map(({ to }) => to),
    [2, 3, 4],
  );
  assert.deepEqual(stepsFrom(4, { format: 4, steps }), []);
  assert.equal(stepsFrom(0, { format: 4, steps }), null);
  assert.equal(stepsFrom(1, { format: 3, steps: [step(1, 3)] }), null);
});

test("this version has a way from each format since the first to its own", () => {
  for (let format = 1; format <= FORMAT; format += 1) assert.ok(stepsFrom(format, UPGRADE_TARGET) !== null, `from ${format}`);
});
