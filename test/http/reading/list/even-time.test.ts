import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { atEvenTime, evenMs } from "../../../../src/http/reading/list/even-time.js";
import { ManualClock } from "../../../helpers/manual-clock.js";

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

test("what comes of work waits for its even time to a fraction of a millisecond, and a fault does not", async () => {
  const clock = new ManualClock();
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  let nowMs = 1000.25;
  let result = "";
  const work = async (): Promise<string> => {
    nowMs += 3.4;
    return "done";
  };
  const done = atEvenTime(clock, work, () => nowMs).then((found) => (result = found));
  await turn();
  assert.equal(clock.pendingCount, 1);
  // Long before its time; a timer that comes early; a moment before; its time.
  for (const [atMs, expected] of [
    [1018.2, ""],
    [1018.3, ""],
    [1020.2, ""],
    [1020.25, "done"],
  ] as const) {
    clock.advance(Math.max(0, atMs - nowMs));
    nowMs = atMs;
    await turn();
    await turn();
    assert.equal(result, expected, `at ${atMs}`);
  }
  await done;
  await assert.rejects(
    atEvenTime(clock, () => Promise.reject(new Error("no list"))),
    /no list/,
  );
  assert.equal(clock.pendingCount, 0);
});
