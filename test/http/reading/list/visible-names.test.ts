import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { commonRanges, rangesOfPattern, type NameRange } from "../../../../src/protocol/names/name-range.js";
import { nameMatcher } from "../../../../src/protocol/names/name-pattern.js";
import { visibleNames } from "../../../../src/http/reading/list/visible-names.js";
import { ListedNames } from "../../../../src/storage/listed-names.js";
import type { MatchingNames, StreamList } from "../../../../src/storage/storage.js";
import { Random } from "../../../helpers/random.js";

type Names = Pick<StreamList, "names" | "matching">;

/** A list of these names; `isKept` says whether there is an index of those that match patterns, each time it is asked. */
function listOf(all: ListedNames, isKept: () => boolean = () => true): Names {
  return {
    names: async (range, count) => all.slice(range, count),
    matching: async (patterns) => {
      const matching = await all.matching(patterns);
      const slice: MatchingNames["slice"] = (source, range, count) => (isKept() ? (matching?.slice(source, range, count) ?? null) : null);
      return matching !== null && isKept() ? { slice } : null;
    },
  };
}

async function found(list: Names, ranges: readonly NameRange[]): Promise<string[]> {
  const names: string[] = [];
  for await (const each of visibleNames(list, ranges)) names.push(...each);
  return names;
}

describe("the names of a caller's patterns", () => {
  test("come in order, each once, without others, and with others where an index is not there, or goes", async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = new Random(seed);
    for (let round = 0; round < 60; round += 1) {
      const text = (segments: readonly string[]): string =>
        Array.from({ length: random.integer(1, 3) }, () => random.pick(segments)).join("/");
      const segments = ["a", "b", "log", ...Array.from({ length: 30 }, (_, at) => String(at))];
      const all = [...new Set(Array.from({ length: 2000 }, () => text(segments)))].sort();
      const list = new ListedNames(all);
      // Few, so that each has more than one burst, or many.
      const patterns = Array.from({ length: random.pick([1, 2, 100]) }, () => text(["a", "b", "*", "**", "1*", "*1", "log"]));
      const ranges = commonRanges(patterns.flatMap(rangesOfPattern), rangesOfPattern("**"), "");
      const expected = all.filter((name) => patterns.some((pattern) => nameMatcher(pattern)(name)));
      const what = `${patterns.join(" ")}, seed ${seed}`;
      const names = await found(listOf(list), ranges);
      // A name that a range may have alone is not looked up.
      assert.deepEqual(
        names.filter((name) => all.includes(name)),
        expected,
        what,
      );
      let left = random.integer(0, 5);
      const others = await found(
        listOf(list, () => (left -= 1) >= 0),
        ranges,
      );
      assert.deepEqual(others, [...new Set(others)].sort(), what);
      assert.deepEqual(
        expected.filter((name) => !others.includes(name)),
        [],
        what,
      );
    }
  });

  test("of thousands of patterns come without others, too", async () => {
    const all = Array.from({ length: 3000 }, (_, at) => [`a/${at}/log`, `b/${at}/secret`])
      .flat()
      .sort();
    const patterns = Array.from({ length: 3000 }, (_, at) => `*/${at}/log`);
    const ranges = commonRanges(patterns.flatMap(rangesOfPattern), rangesOfPattern("**"), "");
    assert.deepEqual(
      await found(listOf(new ListedNames(all)), ranges),
      all.filter((name) => name.startsWith("a/")),
    );
  });

  test("of more kinds than there are indexes for are looked for among all, and no index is made in vain", async (t) => {
    const all = new ListedNames(["a/secret", "r1/x-k1", "r1/y", "r64/x-k64"]);
    const patterns = Array.from({ length: 65 }, (_, at) => `r${at}/*-k${at}`);
    const ranges = commonRanges(patterns.flatMap(rangesOfPattern), rangesOfPattern("**"), "");
    const matching = t.mock.method(all, "matching");
    assert.deepEqual(await found(listOf(all), ranges), ["r1/x-k1", "r1/y", "r64/x-k64"]);
    assert.equal(matching.mock.callCount(), 1);
    assert.equal(await matching.mock.calls[0]?.result, null);
  });
});
