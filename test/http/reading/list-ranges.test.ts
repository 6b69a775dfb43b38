import assert from "node:assert/strict";
import { test } from "node:test";
import { rangesOf } from "../../../src/http/reading/list-ranges.js";

for (const [title, beginnings, beginning, after, expected] of [
  ["who may see everything is shown what is asked for", [""], "a/", "", [["a/", "a/"]]],
  ["who may see a part is shown that", ["mine/"], "", "", [["mine/", "mine/"]]],
  ["and no more than what is asked for of it", ["mine/"], "mine/x", "", [["mine/x", "mine/x"]]],
  ["what is elsewhere is not looked at", ["mine/"], "yours/", "", []],
  [
    "several parts come in order",
    ["c", "a"],
    "",
    "",
    [
      ["a", "a"],
      ["c", "c"],
    ],
  ],
  ["a part of another comes once", ["a/b", "a", "a/c", "a"], "", "", [["a", "a"]]],
  ["what is before a name is over", ["a", "c"], "", "b", [["c", "c"]]],
  ["a name in a part has the rest of it follow", ["a", "c"], "", "c/1", [["c/1\0", "c"]]],
  ["so does one that is where a part begins", ["a"], "", "a", [["a\0", "a"]]],
  ["behind all there is nothing", ["a", "c"], "", "d", []],
  ["nobody's parts are none", [], "", "", []],
] as const)
  test(title, () => {
    const found = rangesOf(beginnings, beginning, after).map(({ from, beginning: each }) => [from, each]);
    assert.deepEqual(found, expected);
  });
