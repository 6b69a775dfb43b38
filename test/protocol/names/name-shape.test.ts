import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nameMatcher } from "../../../src/protocol/names/name-pattern.js";
import { rangesOfPattern } from "../../../src/protocol/names/name-range.js";
import { keyInShape, shapeOf } from "../../../src/protocol/names/name-shape.js";
import { Random } from "../../helpers/random.js";

describe("the shape of a pattern", () => {
  for (const [pattern, shape, key] of [
    ["users/alice/*", "\0/\0/*", ""],
    ["users/bob/room-*", "\0/\0/*", ""],
    ["users/*/log", "\0/*/\0", "log"],
    ["users/*-1/log", "\0/*-1/\0", "log"],
    ["users/a*/b*", "\0/*/b*", ""],
    ["*", "*", ""],
    ["**/log", "**/\0", "log"],
    ["a/**/b/*/c", "\0/**/\0/*/\0", "b/c"],
    ["*/a/**/b/**/c", "*/\0/**/b/**/\0", "a/c"],
    ["a**/b", "*/\0", "b"],
  ] as const)
    test(pattern, () => assert.deepEqual(shapeOf(pattern), { shape, key }));
});

describe("the key of a name in a shape", () => {
  for (const [shape, name, key] of [
    ["\0/\0/*", "users/alice/1", ""],
    ["\0/\0/*", "users/alice", null],
    ["\0/\0/*", "users/alice/1/2", null],
    ["\0/*/\0", "a/b/log", "log"],
    ["**/\0", "log", "log"],
    ["**/\0", "a/b/log", "log"],
    ["\0/**/\0/*/\0", "a/b/x/c", "b/c"],
    ["\0/**/\0/*/\0", "a/1/2/b/x/c", "b/c"],
    ["\0/**/\0/*/\0", "a/x/c", null],
    ["*/\0/**/b/**/\0", "1/a/b/c", "a/c"],
    ["*/\0/**/b/**/\0", "1/a/c", null],
  ] as const)
    test(`${name} in ${JSON.stringify(shape)}`, () => assert.equal(keyInShape(shape)(name), key));
});

test("a pattern matches the names of its range that have its key in its shape, and no others", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = new Random(seed);
  const text = (segments: readonly string[], most: number): string =>
    Array.from({ length: random.integer(1, most) }, () => random.pick(segments)).join("/");
  let matched = 0;
  for (let round = 0; round < 50_000; round += 1) {
    const pattern = text(["a", "b", "*", "**", "a*", "*b", "a*b", "a**"], 5);
    const [range] = rangesOfPattern(pattern);
    if (range?.sources === undefined) continue;
    const name = text(["a", "b", "ab", "aab", "a*", "**"], 6);
    const { shape, key } = shapeOf(pattern);
    const isIn = name >= range.from && (range.to === null || name < range.to);
    const isMatched = nameMatcher(pattern)(name);
    assert.equal(isIn && keyInShape(shape)(name) === key, isMatched, `${pattern} ${name}, seed ${seed}`);
    if (isMatched) matched += 1;
  }
  assert.ok(matched > 1000, String(matched));
});
