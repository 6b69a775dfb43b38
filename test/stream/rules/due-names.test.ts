import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DueNames } from "../../../src/stream/rules/due-names.js";

const MINUTE_MS = 60_000;

function atMinute(minutes: number): number {
  return minutes * MINUTE_MS;
}

describe("names that come due", () => {
  test("are taken once they are due, a minute late at most, the earliest first", () => {
    const names = new DueNames(10);
    names.extend(atMinute(10));
    names.add("later", atMinute(3));
    names.add("soon", atMinute(1) + 1);
    assert.deepEqual(names.take(atMinute(1)), []);
    assert.deepEqual(names.take(atMinute(2)), ["soon"]);
    names.add("again", atMinute(2));
    assert.deepEqual(names.take(atMinute(9)), ["again", "later"]);
    assert.deepEqual([names.size, names.take(Infinity)], [0, []]);
  });

  test("are kept once, with the time that was told last", () => {
    const names = new DueNames(10);
    names.extend(atMinute(10));
    names.add("a", atMinute(2));
    names.add("a", atMinute(5));
    assert.equal(names.size, 1);
    assert.deepEqual(names.take(atMinute(4)), []);
    names.add("a", atMinute(20));
    assert.deepEqual([names.size, names.take(Infinity)], [0, []]);
  });

  test("are kept only before the time up to which all are", () => {
    const names = new DueNames(10);
    names.add("too early to tell", 0);
    assert.deepEqual([names.size, names.untilMs], [0, -Infinity]);
    names.extend(atMinute(10) + 59_999);
    assert.equal(names.untilMs, atMinute(10));
    names.add("inside", atMinute(9));
    names.add("outside", atMinute(9) + 1);
    assert.deepEqual(names.take(Infinity), ["inside"]);
  });

  test("beyond their number the latest are given up, and the time with them", () => {
    const names = new DueNames(3);
    names.extend(atMinute(100));
    for (const [name, minute] of [
      ["a", 4],
      ["b", 9],
      ["c", 9],
      ["d", 2],
    ] as const)
      names.add(name, atMinute(minute));
    assert.deepEqual([names.size, names.untilMs], [2, atMinute(9)]);
    names.add("e", atMinute(9));
    assert.equal(names.size, 2);
    assert.deepEqual(names.take(Infinity), ["d", "a"]);
  });

  test("of which too many are due at once are left to who asks for all", () => {
    const names = new DueNames(3);
    names.extend(atMinute(100));
    for (let index = 0; index < 5; index += 1) names.add(String(index), atMinute(7));
    assert.deepEqual([names.size, names.untilMs], [0, atMinute(7)]);
  });
});
