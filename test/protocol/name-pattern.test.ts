import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nameMatcher } from "../../src/protocol/name-pattern.js";

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
  ] as const) {
    test(`${pattern} matches ${matching.join(", ")}`, () => {
      const matches = nameMatcher(pattern);
      for (const name of matching) assert.equal(matches(name), true, name);
      for (const name of others) assert.equal(matches(name), false, name);
    });
  }

  test("matches the name that is written like it", () => assert.equal(nameMatcher("a/**b*")("a/**b*"), true));
});
