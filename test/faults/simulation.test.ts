import assert from "node:assert/strict";
import { test } from "node:test";
import { runHistory } from "./histories.js";
import { runSeeds } from "./seeds.js";

const HISTORIES = 1000;

// New seeds each time: every run of the tests looks where none has looked before.
test(`${HISTORIES} histories with crashes and faults lose, double and change nothing that was acknowledged`, async () => {
  const failures = await runSeeds({ run: "history", from: Date.now(), count: HISTORIES, workers: 2 });
  assert.ok(failures.length === 0, failures.map(({ seed, says }) => `${says}\n  replay: npm run simulate -- --seed ${seed}`).join("\n"));
});

test("a bit that is turned around after a kill, and power cuts that come before the next start syncs anything", async () => {
  assert.ok((await runHistory(1795305942672)).crashes > 5);
});
