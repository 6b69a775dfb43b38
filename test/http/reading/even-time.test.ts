import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { atEvenTime, evenMs } from "../../../src/http/reading/even-time.js";
import { ManualClock } from "../../helpers/manual-clock.js";

describe("an even time", () => {
  for (const [tookMs, expected] of [
    [0, 20],
    [0.3, 20],
    [20, 20],
    [20.1, 40],
    [75, 80],
    [1000, 1280],
  ] as const)
    test(`of work that took ${tookMs} ms is ${expected} ms`, () => assert.equal(evenMs(tookMs), expected));
});

test("what comes of work waits for its even time, and a fault does not", async () => {
  const clock = new ManualClock();
  let result = "";
  const done = atEvenTime(clock, async () => "done").then((found) => (result = found));
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.equal(clock.pendingCount, 1);
  assert.equal(result, "");
  clock.advance(20);
  await done;
  assert.equal(result, "done");
  await assert.rejects(
    atEvenTime(clock, () => Promise.reject(new Error("no list"))),
    /no list/,
  );
  assert.equal(clock.pendingCount, 0);
});
