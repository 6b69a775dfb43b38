import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nameMatcher } from "../../../src/protocol/names/name-pattern.js";
import {
  ALL_NAMES,
  commonRanges,
  justAfter,
  namesBeginningWith,
  rangesOfPattern,
  type NameRange,
} from "../../../src/protocol/names/name-range.js";
import { Random } from "../../helpers/random.js";

function isIn(name: string, { from, to }: NameRange): boolean {
  return name >= from && (to === null || name < to);
}

describe("names that begin with", () => {
  for (const [beginning, to] of [
    ["", null],
    ["a/", "a0"],
    ["é", "ê"],
    ["a\uffff", "b"],
    ["\uffff\uffff", null],
  ] as const)
    test(JSON.stringify(beginning), () => assert.deepEqual(namesBeginningWith(beginning), { from: beginning, to }));
});

describe("the ranges of a pattern", () => {
  for (const [pattern, expected] of [
    ["a", [["a", "a\0"]]],
    [
      "a/**",
      [
        ["a", "a\0"],
        ["a/", "a0"],
      ],
    ],
    [
      "a/**/**",
      [
        ["a", "a\0"],
        ["a/", "a0"],
      ],
    ],
    ["a/*", [["a/", "a0"]]],
    ["a/**/z", [["a/", "a0"]]],
    ["a**", [["a", "b"]]],
    ["**", [["", null]]],
    ["*/a", [["", null]]],
  ] as const)
    test(pattern, () =>
      assert.deepEqual(
        rangesOfPattern(pattern).map(({ from, to }) => [from, to]),
        expected,
      ),
    );

  for (const [pattern, hasOthers] of [
    ["a", false],
    ["**", false],
    ["**/**", false],
    ["a/**", false],
    ["a/b/**/**", false],
    ["*", true],
    ["a*", true],
    ["a**", true],
    ["a/*", true],
    ["a/*/log", true],
    ["a/**/log", true],
    ["**/log", true],
  ] as const)
    test(`${pattern} ${hasOthers ? "may have" : "has no"} others`, () =>
      assert.equal(
        rangesOfPattern(pattern).some((range) => range.sources !== undefined),
        hasOthers,
      ));

  test("have no name that it does not match, unless they say so", () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = new Random(seed);
    const segment = (): string => random.pick(["a", "b", "*", "**", "a*"]);
    const patterns = (): string[] =>
      Array.from({ length: random.integer(1, 3) }, () => Array.from({ length: random.integer(1, 3) }, segment).join("/"));
    for (let round = 0; round < 5000; round++) {
      const [some, others] = [patterns(), patterns()];
      const name = Array.from({ length: random.integer(1, 3) }, () => random.pick(["a", "b", "aa", "c"])).join("/");
      const isMatched = [some, others].every((each) => each.some((pattern) => nameMatcher(pattern)(name)));
      const found = commonRanges(some.flatMap(rangesOfPattern), others.flatMap(rangesOfPattern), "");
      const range = found.find((each) => isIn(name, each));
      const what = `${some.join(" ")}, ${others.join(" ")}: ${name}, seed ${seed}`;
      if (isMatched) assert.ok(range !== undefined, what);
      else assert.ok(range === undefined || range.sources !== undefined, what);
    }
  });

  test("have every name that it matches", () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = new Random(seed);
    const pick = (letters: string) =>
      Array.from({ length: random.integer(1, 7) }, () => letters[random.integer(0, letters.length - 1)]).join("");
    for (let round = 0; round < 20_000; round++) {
      const [pattern, name] = [pick("ab/**"), pick("ab/")];
      if (nameMatcher(pattern)(name))
        assert.ok(
          rangesOfPattern(pattern).some((range) => isIn(name, range)),
          `${pattern} ${name}, seed ${seed}`,
        );
    }
  });
});

describe("what ranges have in common", () => {
  for (const [title, some, others, from, expected] of [
    ["is what is asked for, of everything", ["**"], ["a/*"], "", [["a/", "a0"]]],
    ["is what is there, of everything asked for", ["a/*"], ["**"], "", [["a/", "a0"]]],
    ["is no more than either", ["a/*"], ["a/b*"], "", [["a/b", "a/c"]]],
    ["is nothing where they are apart", ["a/*"], ["b/*"], "", []],
    [
      "comes in order",
      ["c*", "a*"],
      ["**"],
      "",
      [
        ["a", "b"],
        ["c", "d"],
      ],
    ],
    ["comes once", ["a/b*", "a*", "a/c", "a"], ["**"], "", [["a", "b"]]],
    ["is one range where one ends as another begins", ["a*", "b*"], ["**"], "", [["a", "c"]]],
    ["has no end where one has none", ["a*", "**"], ["**"], "", [["", null]]],
    ["is not before where it is to begin", ["a", "c"], ["**"], justAfter("b"), [["c", "c\0"]]],
    ["begins where it is to, within a range", ["a", "c*"], ["**"], justAfter("c/1"), [["c/1\0", "d"]]],
    ["is nothing behind a single name", ["a"], ["**"], justAfter("a"), []],
    ["is nothing of nothing", [], ["**"], "", []],
  ] as const)
    test(title, () => {
      const found = commonRanges(some.flatMap(rangesOfPattern), others.flatMap(rangesOfPattern), from);
      assert.deepEqual(
        found.map((range) => [range.from, range.to]),
        expected,
      );
    });

  test("is what a name is in both of, however many ranges there are", () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = new Random(seed);
    const word = (): string => Array.from({ length: random.integer(0, 2) }, () => random.pick(["a", "b", "c"])).join("");
    const ranges = (): NameRange[] =>
      Array.from({ length: random.integer(0, 5) }, () => ({ from: word(), to: random.chance(0.1) ? null : word() }));
    for (let round = 0; round < 2000; round += 1) {
      const [some, others, from, name] = [ranges(), ranges(), word(), word()];
      const isWanted = name >= from && [some, others].every((list) => list.some((range) => isIn(name, range)));
      const found = commonRanges(some, others, from);
      assert.equal(found.filter((range) => isIn(name, range)).length, isWanted ? 1 : 0, `seed ${seed}`);
      for (const [at, { to }] of found.slice(0, -1).entries()) assert.ok(to !== null && to < (found[at + 1]?.from ?? ""), `seed ${seed}`);
    }
  });

  test("has no others where one pattern matches all that another's range has", () => {
    for (const some of [
      ["**", "a/*"],
      ["*", "**"],
      ["a/*", "a/**", "**"],
    ])
      assert.deepEqual(commonRanges(some.flatMap(rangesOfPattern), [ALL_NAMES], ""), [ALL_NAMES], some.join(" "));
  });

  test("of all names with themselves is all names", () => assert.deepEqual(commonRanges([ALL_NAMES], [ALL_NAMES], ""), [ALL_NAMES]));
});
