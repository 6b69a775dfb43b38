import assert from "node:assert/strict";
import { test } from "node:test";
import { countDirectAnswers, REQUEST_PATHS, takePath } from "../helpers/request-paths.js";
import { runCampaign } from "./campaign.js";

const REQUESTS = 10_000;

// New seeds each time: every run of the tests looks where none has looked before.
for (const path of REQUEST_PATHS) {
  test(`${REQUESTS} requests, pipelined and partly broken, are each answered as the protocol says, on the ${path} path`, async (context) => {
    takePath(context, path);
    const directAnswers = countDirectAnswers(context);
    const { requests, failures, faults } = await runCampaign({ from: Date.now(), requests: REQUESTS });
    assert.ok(
      failures.length === 0,
      failures.map(({ seed, says }) => `${says}\n  replay: npm run fuzz -- --path ${path} --seed ${seed}`).join("\n"),
    );
    assert.ok(requests >= REQUESTS, `${requests} were sent`);
    assert.deepEqual(faults, []);
    // That this version of Node has the names which the direct path leans on.
    if (path === "direct") assert.ok(directAnswers() > REQUESTS / 20, `${directAnswers()} answers were direct`);
    else assert.equal(directAnswers(), 0);
  });
}
