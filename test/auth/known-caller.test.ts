import assert from "node:assert/strict";
import test from "node:test";
import { ALL_NAMES } from "../../src/protocol/names/name-range.js";
import { KnownCaller, type Rights } from "../../src/auth/known-caller.js";

test("a caller says what it is known by to this room only", () => {
  const right = { grant: 1, rate: null };
  const rights: Rights = {
    rightTo: (operation) => (operation === "read" ? right : null),
    mayAnywhere: (operation) => operation === "read",
    mayEverywhere: (operation) => operation === "read",
    rangesOf: (operation) => (operation === "read" ? [ALL_NAMES] : []),
  };
  const caller = new KnownCaller("token a", 5, rights, { kind: "public" });
  assert.equal(caller.rightTo("read", "a"), right);
  assert.equal(caller.rightTo("append", "a"), null);
  assert.deepEqual([caller.mayAnywhere("read"), caller.mayAnywhere("list")], [true, false]);
  assert.deepEqual([caller.rangesOf("read"), caller.rangesOf("list")], [[ALL_NAMES], []]);
  assert.deepEqual(KnownCaller.basisOf(caller), { kind: "public" });
  assert.equal(caller.weight, 0);
  assert.equal(
    KnownCaller.basisOf({
      id: null,
      endsAtMs: 5,
      rightTo: () => right,
      mayAnywhere: () => true,
      mayEverywhere: () => false,
      rangesOf: () => [],
    }),
    null,
  );
  assert.deepEqual(Object.keys(caller), ["id", "endsAtMs", "askedBy"], "nothing else reaches a log");
});
