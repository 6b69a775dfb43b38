import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseJsonTree, type JsonFault, type JsonTree } from "../../../src/protocol/json/json-tree.js";
import { Random } from "../../helpers/random.js";

function plain(tree: JsonTree | JsonFault): unknown {
  switch (tree.kind) {
    case "fault":
      return tree;
    case "null":
      return null;
    case "array":
      return tree.items.map(plain);
    case "object":
      return Object.fromEntries([...tree.members].map(([key, member]) => [key, plain(member.value)]));
    default:
      return tree.value;
  }
}

describe("a JSON text as a tree", () => {
  for (const text of [
    "{}",
    "[]",
    " [ 1 , -2.5e3 , 0 ] ",
    '{"a":{"b":[true,false,null,"x\\u00e9\\n\\"\\\\"]}}',
    '"lone"',
    "1e400",
    '{"__proto__":1,"constructor":2}',
  ])
    test(`${text} is what the platform makes of it`, () => assert.deepEqual(plain(parseJsonTree(text)), JSON.parse(text)));

  test("knows where each value and key begins", () => {
    const tree = parseJsonTree('{\n "a": [1,\n2]}');
    assert.ok(tree.kind === "object");
    const member = tree.members.get("a");
    assert.ok(member?.value.kind === "array");
    assert.deepEqual([member.at, member.value.at, ...member.value.items.map(({ at }) => at)], [3, 8, 9, 12]);
  });

  for (const [text, at, words] of [
    ["", 0, "has the end where a value belongs"],
    ["{", 1, "has the end where a key in double quotes belongs"],
    ['{"a":1,}', 7, 'has "}" where a key in double quotes belongs'],
    ['{"a" 1}', 5, 'has "1" where ":" after the key "a" belongs'],
    ['{"a":1 "b":2}', 7, 'has "\\"" where "," or "}" belongs'],
    ["[1 2]", 3, 'has "2" where "," or "]" belongs'],
    ["[1,]", 3, 'has "]" where a value belongs'],
    ["// no", 0, 'has "/" where a value belongs'],
    ["nul", 0, 'has "n" where a value belongs'],
    ["01", 1, "has more text after its end"],
    ["{} x", 3, "has more text after its end"],
    ['{"a":1,"\\u0061":2}', 7, 'has the key "a" twice in one object'],
    ['["a', 1, "has a text without its closing quote"],
    ['["a\nb"]', 1, "has a text without its closing quote"],
    ['["\\x"]', 1, "has a text with an escape that JSON does not have"],
    ["😀", 0, 'has "😀" where a value belongs'],
    ["[".repeat(33), 32, "is nested more than 32 levels deep"],
  ] as const)
    test(`${JSON.stringify(text)} ${words}`, () => assert.deepEqual(parseJsonTree(text), { kind: "fault", at, words }));

  test("takes what the platform takes and nothing else, but for keys that are there twice", () => {
    const random = new Random(11);
    const marks = ["{", "}", "[", "]", ",", ":", '"a"', '"b"', '"', "1", "-", "0", ".5", "e1", "true", "null", " ", "\\", "\n"];
    for (let round = 0; round < 50_000; round++) {
      const text = Array.from({ length: random.integer(0, 9 - 1) }, () => marks[random.integer(0, marks.length - 1)]).join("");
      const tree = parseJsonTree(text);
      if (tree.kind === "fault" && tree.words.includes("twice")) continue;
      let expected: unknown;
      try {
        expected = JSON.parse(text);
      } catch {
        expected = undefined;
      }
      if (expected === undefined) assert.equal(tree.kind, "fault", text);
      else assert.deepEqual(plain(tree), expected, text);
    }
  });
});
