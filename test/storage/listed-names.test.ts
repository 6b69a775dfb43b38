import assert from "node:assert/strict";
import { test } from "node:test";
import { nameMatcher } from "../../src/protocol/names/name-pattern.js";
import { ALL_NAMES, namesBeginningWith, rangesOfPattern, type NameSource } from "../../src/protocol/names/name-range.js";
import { ListedNames } from "../../src/storage/listed-names.js";
import { SortedNames } from "../../src/storage/sorted-names.js";
import { Random } from "../helpers/random.js";

const numbered = (count: number, name: (at: number) => string): string[] => Array.from({ length: count }, (_, at) => name(at)).sort();

/** A pattern as a list is asked for it. */
function sourceOf(pattern: string): NameSource {
  return { range: rangesOfPattern(pattern)[0] ?? ALL_NAMES, pattern };
}

test("names that match a pattern are what a look at all finds, while names come and go", async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = new Random(seed);
  const nameOf = (): string =>
    Array.from({ length: random.integer(1, 4) }, () => random.pick(["a", "b", "ab", "é", "log", `${random.integer(0, 40)}`])).join("/");
  const all = new Set(Array.from({ length: 3000 }, nameOf));
  const names = new ListedNames([...all].sort());
  const change = (): void => {
    const name = nameOf();
    if (random.chance(0.5)) {
      names.add(name);
      all.add(name);
    } else {
      names.remove(name);
      all.delete(name);
    }
  };
  const patterns = ["a/*", "b/*", "a/*/log", "**/log", "a/**/b", "*b/*", "a*/**/*/log"];
  for (let round = 0; round < 50; round += 1) {
    for (let changes = 0; changes < 20; changes += 1) change();
    const asked = names.matching([...patterns, null]);
    // In the same turn, and in those in which the first index is made.
    change();
    for (let turn = 0; turn < 10; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve)).then(change);
    await asked;
    // An answer has what was there when it was asked for; of what came since, as much as its turns let it have.
    const matching = await names.matching([...patterns, null]);
    for (const pattern of patterns) {
      const from = nameOf();
      const range = random.chance(0.5) ? { from, to: null } : namesBeginningWith(from);
      const expected = [...all]
        .filter((name) => nameMatcher(pattern)(name) && name >= from && (range.to === null || name < range.to))
        .sort();
      for (const count of [3, Infinity])
        assert.deepEqual(matching?.slice(sourceOf(pattern), range, count), expected.slice(0, count), `${pattern}, seed ${seed}`);
    }
    assert.deepEqual(matching?.slice({ range: ALL_NAMES, pattern: null }, ALL_NAMES, Infinity), [...all].sort(), `seed ${seed}`);
  }
});

test("an index is made once, for all patterns that differ in their literal segments", async (t) => {
  const names = new ListedNames(numbered(2000, (at) => `users/${at}/log`));
  const first = await names.matching(["users/*/log"]);
  const fills = t.mock.method(SortedNames.prototype, "slice");
  const second = await names.matching(["users/*/secret", "rooms/*/log"]);
  assert.equal(fills.mock.callCount(), 0);
  assert.equal(first?.slice(sourceOf("users/*/log"), ALL_NAMES, Infinity)?.length, 2000);
  assert.deepEqual(second?.slice(sourceOf("rooms/*/log"), ALL_NAMES, Infinity), []);
});

test("of patterns of more than 64 kinds those asked for within a minute are kept", async () => {
  let nowMs = 0;
  const names = new ListedNames(["a/1", "b/1-0", "b/1-63"], Infinity, () => nowMs);
  const kinds = numbered(64, (at) => `b/*-${at}`);
  assert.equal(await names.matching([...kinds, "a/*"]), null);
  const first = await names.matching(["a/*"]);
  assert.deepEqual(first?.slice(sourceOf("a/*"), ALL_NAMES, 10), ["a/1"]);
  nowMs = 59_000;
  assert.equal(await names.matching(kinds), null);
  assert.deepEqual(first?.slice(sourceOf("a/*"), ALL_NAMES, 10), ["a/1"]);
  nowMs = 60_000;
  const others = await names.matching(kinds);
  assert.deepEqual(others?.slice(sourceOf("b/*-63"), ALL_NAMES, 10), ["b/1-63"]);
  assert.equal(first?.slice(sourceOf("a/*"), ALL_NAMES, 10), null);
  nowMs = 180_000;
  const again = await names.matching(["a/*"]);
  assert.deepEqual(again?.slice(sourceOf("a/*"), ALL_NAMES, 10), ["a/1"]);
});

test("where there is no room for all indexes, the largest is given up, and made again once there is", async (t) => {
  const many = numbered(2000, (at) => `a/${at}`);
  const names = new ListedNames(["b/0/c", ...many].sort(), 10_000);
  const few = await names.matching(["b/*/c"]);
  const gone = await names.matching(["a/*"]);
  assert.equal(gone?.slice(sourceOf("a/*"), ALL_NAMES, 10), null);
  assert.deepEqual(few?.slice(sourceOf("b/*/c"), ALL_NAMES, 10), ["b/0/c"]);
  const fills = t.mock.method(SortedNames.prototype, "slice");
  assert.equal(await names.matching(["a/*"]), null);
  assert.equal(fills.mock.callCount(), 0);
  for (const name of many.slice(500)) names.remove(name);
  const back = await names.matching(["a/*"]);
  assert.deepEqual(back?.slice(sourceOf("a/*"), ALL_NAMES, Infinity), many.slice(0, 500));
  assert.deepEqual(few?.slice(sourceOf("b/*/c"), ALL_NAMES, 10), ["b/0/c"]);
});

test("names that are read again leave the indexes as they are, but for what has changed", async () => {
  const names = new ListedNames([]);
  names.become(["a/1", "a/2", "b/1"]);
  const matching = await names.matching(["a/*"]);
  names.become(["a/0", "a/2", "a/3", "c"]);
  await names.matching(["a/*"]);
  assert.deepEqual(matching?.slice(sourceOf("a/*"), ALL_NAMES, 10), ["a/0", "a/2", "a/3"]);
  assert.deepEqual(names.slice(ALL_NAMES, 10), ["a/0", "a/2", "a/3", "c"]);
  names.become([]);
  await names.matching(["a/*"]);
  assert.deepEqual(matching?.slice(sourceOf("a/*"), ALL_NAMES, 10), []);
});
