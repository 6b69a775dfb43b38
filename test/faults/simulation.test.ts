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

// Each broke a promise once, or an oracle that took a promise for broken.
for (const seed of [
  1795305942672, 1795382936506, 1795382936815, 1795382936864, 1795392311211, 4400104, 700002252, 700003270, 99162, 901089, 1795399828866,
  30007819, 1795485441071, 1795485973947, 1795486189843, 1795486668808,
  // A start could not read a sidecar for a moment, and nobody expected its notice.
  1795779981863,
  // A fork for which memory had no room whenever it was looked for was taken for one that is not there.
  1795781440795,
  // A deletion on its way met the stream that was made again meanwhile, and nobody expected it.
  990002719,
  // A fault that was heard of while a batch was on its way made the next, which was too by then, void.
  1795879748990,
]) {
  test(`history ${seed}, which failed once, holds`, async () => void (await runHistory(seed)));
}
