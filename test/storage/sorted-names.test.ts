import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL_NAMES } from "../../src/protocol/names/name-range.js";
import { SortedNames } from "../../src/storage/sorted-names.js";
import { Random } from "../helpers/random.js";

test("sorted names are what a sorted set of them is", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = new Random(seed);
  const names = new SortedNames();
  const expected = new Set<string>();
  const nameAt = (): string => `${random.pick(["a", "b/", "é", "𝄞", "\uffee"])}${random.integer(0, 3000)}`;
  for (let step = 0; step < 20_000; step += 1) {
    const name = nameAt();
    // First it grows, then it shrinks.
    if (random.chance(step < 10_000 ? 0.8 : 0.2)) {
      names.add(name);
      expected.add(name);
    } else {
      names.remove(name);
      expected.delete(name);
    }
    if (step % 500 !== 0) continue;
    const sorted = [...expected].sort();
    assert.equal(names.size, expected.size);
    assert.deepEqual(names.slice(ALL_NAMES, Infinity), sorted, `seed ${seed}`);
    const from = nameAt();
    assert.deepEqual(names.slice({ from, to: null }, 300), sorted.filter((one) => one >= from).slice(0, 300), `seed ${seed}`);
    const to = nameAt();
    const between = sorted.filter((one) => one >= from && one < to);
    for (const count of [10, Infinity]) assert.deepEqual(names.slice({ from, to }, count), between.slice(0, count), `seed ${seed}`);
  }
});

test("there may be none", () => {
  const names = new SortedNames();
  names.remove("a");
  assert.deepEqual(names.slice(ALL_NAMES, 10), []);
  names.add("a");
  names.remove("a");
  assert.deepEqual([names.slice(ALL_NAMES, 10), names.size], [[], 0]);
});
