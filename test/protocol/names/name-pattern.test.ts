import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nameMatcher } from "../../../src/protocol/names/name-pattern.js";
import { Random } from "../../helpers/random.js";

describe("a pattern of names", () => {
  for (const [pattern, matching, others] of [
    ["chat", ["chat"], ["chats", "chat/1", "Chat", "cha"]],
    ["chat/*", ["chat/1", "chat/room one"], ["chat", "chat/1/2", "chats/1"]],
    ["room-*/log", ["room-1/log", "room-/log"], ["room-1/2/log", "room/log"]],
    ["*", ["a", "ä"], ["a/b"]],
    ["**", ["a", "a/b", "a/b/c"], []],
    ["chat/**", ["chat", "chat/1", "chat/1/2"], ["chats", "a/chat"]],
    ["**/log", ["log", "a/log", "a/b/log"], ["a/log/b", "alog"]],
    ["a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["a", "z", "az"]],
    ["a.b+(c)", ["a.b+(c)"], ["aXb+(c)", "a.bb(c)"]],
    ["a**b", ["ab", "axb"], ["a/b"]],
    ["*a*b*", ["ab", "xaxbx", "aab"], ["ba", "a/b"]],
    ["ab*ba", ["abba", "abxba"], ["aba", "ab"]],
    ["**/a/**/b/**", ["a/b", "x/a/y/b/z", "a/a/b"], ["b/a", "a", "xa/b"]],
    ["**/a/*", ["a/b", "a/a", "x/a/a/c"], ["a", "x/a"]],
    ["**/**", ["a", "a/b"], []],
    ["*/**", ["a", "a/b"], []],
    ["***", ["a"], ["a/b"]],
    ["{sub}/*", ["{sub}/a"], ["sub/a"]],
  ] as const) {
    test(`${pattern} matches ${matching.join(", ")}`, () => {
      const matches = nameMatcher(pattern);
      for (const name of matching) assert.equal(matches(name), true, name);
      for (const name of others) assert.equal(matches(name), false, name);
    });
  }

  test("matches the name that is written like it", () => assert.equal(nameMatcher("a/**b*")("a/**b*"), true));

  test("agrees with a plain definition on random names and patterns", () => {
    const random = new Random(7);
    const pick = (letters: string) =>
      Array.from({ length: random.integer(1, 7) }, () => letters[random.integer(0, letters.length - 1)]).join("");
    for (let round = 0; round < 20_000; round++) {
      const [pattern, name] = [pick("ab/**"), pick("ab/")];
      if (/(^|\/)(\/|$)/.test(name) || /(^|\/)(\/|$)/.test(pattern)) continue;
      assert.equal(nameMatcher(pattern)(name), plainly(pattern.split("/"), name.split("/")), `${pattern} ${name}`);
    }
  });

  for (const [title, pattern, name] of [
    ["asterisks in a segment", `${"*a".repeat(500)}*b`, "a".repeat(1024)],
    ["segments of any number", `${"**/a/".repeat(200)}b`, "a/".repeat(511) + "a"],
    ["both", `${"**/*a*a*/".repeat(100)}b`, "aa/".repeat(341) + "a"],
    ["long parts that nearly fit", `**/*${"a".repeat(500)}b*`, "a".repeat(1024)],
  ] as const) {
    test(`${title} cost no more than the lengths multiplied`, () => {
      const matches = nameMatcher(pattern);
      const startMs = performance.now();
      for (let round = 0; round < 20; round++) assert.equal(matches(name), false);
      assert.ok(performance.now() - startMs < 2000, `${performance.now() - startMs} ms`);
    });
  }
});

/** What a pattern means, with no thought of time. */
function plainly([first, ...others]: readonly string[], segments: readonly string[]): boolean {
  if (first === undefined) return segments.length === 0;
  if (first === "**") return plainly(others, segments) || (segments.length > 0 && plainly([first, ...others], segments.slice(1)));
  const [segment, ...more] = segments;
  return segment !== undefined && within(first, segment) && plainly(others, more);
}

function within(pattern: string, text: string): boolean {
  if (pattern === "") return text === "";
  if (pattern[0] === "*") return within(pattern.slice(1), text) || (text !== "" && within(pattern, text.slice(1)));
  return text !== "" && text[0] === pattern[0] && within(pattern.slice(1), text.slice(1));
}
