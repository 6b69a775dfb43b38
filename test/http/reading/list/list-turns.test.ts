import assert from "node:assert/strict";
import { test } from "node:test";
import { LIST_TURNS } from "../../../../src/http/reading/list/list-turns.js";

/** Keeps the process busy. */
function work(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

test("all who look at names share some milliseconds of a turn of the event loop, and the next has as many", async () => {
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.equal(LIST_TURNS.isSpent, false);
  assert.equal(LIST_TURNS.isSpent, false);
  work(5);
  assert.equal(LIST_TURNS.isSpent, true);
  let turns = 0;
  const count = (): void => {
    turns += 1;
    immediate = setImmediate(count);
  };
  let immediate = setImmediate(count);
  const others = Array.from({ length: 4 }, async () => {
    await LIST_TURNS.next();
    work(5);
    return turns;
  });
  const inTurns = await Promise.all(others);
  clearImmediate(immediate);
  assert.equal(new Set(inTurns).size, 4, `each in a turn of its own: ${inTurns.join(", ")}`);
});
