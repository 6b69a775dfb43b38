import assert from "node:assert/strict";
import { test } from "node:test";
import { runSeeds } from "./seeds.js";

const DIRECTORIES = 60;

// New seeds each time: every run of the tests does harm that none has done before.
test(`${DIRECTORIES} directories that came to harm are repaired once and for all, and nothing is lost in silence`, async () => {
  const failures = await runSeeds({ run: "damage", from: Date.now(), count: DIRECTORIES, workers: 2 });
  assert.ok(
    failures.length === 0,
    failures.map(({ seed, says }) => `${says}\n  replay: npm run simulate -- --damage --seed ${seed}`).join("\n"),
  );
});
