import assert from "node:assert/strict";
import { test } from "node:test";
import { SmallSet } from "../../../../src/storage/file/memory/small-set.js";
import { Random } from "../../../helpers/random.js";

test("a small set does what a set does", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = new Random(seed);
  for (let round = 0; round < 200; round += 1) {
    const expected = new Set<number>();
    const small = new SmallSet();
    for (let step = 0; step < 30; step += 1) {
      const member = random.integer(0, 3);
      const kind = random.integer(0, 7);
      if (kind < 4) {
        small.add(member);
        expected.add(member);
      } else if (kind < 7) {
        small.delete(member);
        expected.delete(member);
      } else {
        small.clear();
        expected.clear();
      }
      assert.deepEqual([...small], [...expected], `seed ${seed}`);
      assert.equal(small.size, expected.size, `seed ${seed}`);
      for (let other = 0; other < 4; other += 1) assert.equal(small.has(other), expected.has(other), `seed ${seed}`);
    }
  }
});

test("a small set begins with the members that it is given", () => {
  assert.deepEqual([...new SmallSet([])], []);
  assert.deepEqual([...new SmallSet([0])], [0]);
  assert.deepEqual([...new SmallSet([7, 0, 7])], [7, 0]);
});
