import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Remembered } from "../../src/auth/remembered.js";
import { ManualClock } from "../helpers/manual-clock.js";

const caller = (endsAtMs = Infinity) => ({
  id: "a",
  endsAtMs,
  rightTo: () => null,
  mayAnywhere: () => false,
  mayEverywhere: () => false,
  rangesOf: () => [],
});
const ROOMY = { entries: 100, chars: 10_000 };

describe("what is remembered", () => {
  test("is found by its text and name until it ends", () => {
    const clock = new ManualClock();
    const remembered = new Remembered(ROOMY, clock);
    const ends = caller(clock.nowMs() + 10);
    remembered.keep("a", null, ends);
    remembered.keep("b", "stream", ends);
    assert.equal(remembered.find("a", null), ends);
    assert.equal(remembered.find("b", "stream"), ends);
    assert.equal(remembered.find("b", "other"), null);
    assert.equal(remembered.find("a", "stream"), null);
    clock.advance(9);
    assert.equal(remembered.find("a", null), ends);
    clock.advance(1);
    assert.equal(remembered.find("a", null), null);
    assert.equal(remembered.find("b", "stream"), null);
  });

  test("is gone after a change", () => {
    const remembered = new Remembered(ROOMY, new ManualClock());
    remembered.keep("a", null, caller());
    assert.ok(remembered.find("a", null) !== null);
    remembered.clear();
    assert.equal(remembered.find("a", null), null);
  });

  test("stays within its number, and keeps what is used", () => {
    const remembered = new Remembered({ entries: 3, chars: 1000 }, new ManualClock());
    for (const text of ["a", "b", "c"]) remembered.keep(text, null, caller());
    remembered.find("a", null);
    for (const text of ["d", "e"]) remembered.keep(text, null, caller());
    const there = ["a", "b", "c", "d", "e"].filter((text) => remembered.find(text, null) !== null);
    assert.deepEqual(there, ["a", "d", "e"]);
  });

  test("takes the newest when all were used", () => {
    const remembered = new Remembered({ entries: 2, chars: 1000 }, new ManualClock());
    for (const text of ["a", "b", "c", "d"]) {
      remembered.keep(text, null, caller());
      assert.ok(remembered.find(text, null) !== null || text > "b");
    }
  });

  test("stays within its characters, also when one comes again", () => {
    const remembered = new Remembered({ entries: 100, chars: 10 }, new ManualClock());
    for (let round = 0; round < 5; round++) remembered.keep("aaaa", null, caller());
    remembered.keep("bbbb", null, caller());
    assert.ok(remembered.find("bbbb", null) !== null);
    remembered.keep("cccc", null, caller());
    assert.equal(remembered.find("aaaa", null), null);
    remembered.keep("d".repeat(11), null, caller());
    assert.ok(remembered.find("cccc", null) !== null);
  });

  test("counts a caller that takes more memory than its text for that", () => {
    const remembered = new Remembered({ entries: 100, chars: 100 }, new ManualClock());
    for (let round = 0; round < 5; round++) remembered.keep("a", null, caller(), 60);
    assert.ok(remembered.find("a", null) !== null);
    remembered.keep("b", null, caller(), 40);
    assert.ok(remembered.find("a", null) !== null);
    remembered.clear();
    for (const [text, weight] of [
      ["a", 60],
      ["b", 60],
      ["c", 101],
    ] as const)
      remembered.keep(text, null, caller(), weight);
    const there = ["a", "b", "c"].filter((text) => remembered.find(text, null) !== null);
    assert.deepEqual(there, ["b"]);
  });
});
