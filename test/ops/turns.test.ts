import assert from "node:assert/strict";
import { test } from "node:test";
import { TURN_OF_NAMES, Turns } from "../../src/ops/turns.js";
import { TurnCount } from "../helpers/turn-count.js";

test("a few jobs run at a time, the others in order, and a job that fails gives its turn on", async () => {
  const turns = new Turns(2);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const jobs = [0, 1, 2, 3].map((index) =>
    turns.run(async () => {
      begun.push(index);
      await new Promise<void>((resolve) => (ends[index] = resolve));
      if (index === 1) throw new Error("failed");
      return index;
    }),
  );
  const failed = assert.rejects(jobs[1] ?? Promise.resolve(), /failed/);
  assert.deepEqual(begun, [0, 1]);
  ends[1]?.();
  await failed;
  assert.deepEqual(begun, [0, 1, 2]);
  ends[0]?.();
  assert.equal(await jobs[0], 0);
  assert.deepEqual(begun, [0, 1, 2, 3]);
  ends[2]?.();
  ends[3]?.();
  assert.deepEqual(await Promise.all([jobs[2], jobs[3]]), [2, 3]);
  assert.equal(await turns.run(() => Promise.resolve("idle again")), "idle again");
});

/** Keeps the process busy. */
function work(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

test("all who look at names share some milliseconds of a turn of the event loop, and the next has as many", async () => {
  // On a busy machine the process may not run for as long between two looks: that turn says nothing.
  for (let tookMs = Infinity; tookMs >= 4;) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    const beganMs = performance.now();
    const looks = [TURN_OF_NAMES.isSpent, TURN_OF_NAMES.isSpent];
    tookMs = performance.now() - beganMs;
    if (tookMs < 4) assert.deepEqual(looks, [false, false]);
  }
  work(5);
  assert.equal(TURN_OF_NAMES.isSpent, true);
  const count = new TurnCount();
  const others = Array.from({ length: 4 }, async () => {
    await TURN_OF_NAMES.next();
    work(5);
    return count.turns;
  });
  const inTurns = await Promise.all(others);
  count.stop();
  assert.equal(new Set(inTurns).size, 4, `each in a turn of its own: ${inTurns.join(", ")}`);
});
