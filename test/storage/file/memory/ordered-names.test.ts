import assert from "node:assert/strict";
import { test } from "node:test";
import { mergedNames, orderedRuns } from "../../../../src/storage/file/memory/ordered-names.js";
import { Random } from "../../../helpers/random.js";

test("names in any order become one list in order, each once", async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = new Random(seed);
  const lists: string[][] = [[], []];
  const all: string[] = [];
  for (let list = 0; list < 21; list += 1) {
    const names = Array.from(
      { length: random.integer(0, 900) },
      () => `${random.pick(["a", "é", "𝄞", "\uffee"])}${random.integer(0, 9000)}`,
    );
    lists.push([...names].sort());
    all.push(...names);
  }
  const expected = [...new Set(all)].sort();
  assert.deepEqual(await mergedNames(lists), expected, `seed ${seed}`);
  const runs = await orderedRuns(all);
  assert.ok(runs.length > 1);
  assert.deepEqual(await mergedNames(runs), expected, `seed ${seed}`);
  assert.deepEqual(await mergedNames([]), []);
});

test("a long merge lets others have their turn", async () => {
  const lists = [0, 1].map((odd) => Array.from({ length: 50_000 }, (_, at) => String(2 * at + odd).padStart(6, "0")));
  let isMerged = false;
  const merging = mergedNames(lists).then((names) => {
    isMerged = true;
    return names;
  });
  let turns = 0;
  for (; !isMerged; turns += 1) await new Promise<void>((resolve) => setImmediate(resolve));
  assert.ok(turns > 10, `${turns} turns`);
  assert.equal((await merging).length, 100_000);
});
