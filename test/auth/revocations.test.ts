import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Revocations, tagOf } from "../../src/auth/revocations.js";

describe("a revocation", () => {
  const revocations = new Revocations([
    { kind: "id", value: "all", beforeMs: Infinity },
    { kind: "sub", value: "alice", beforeMs: 1000 },
    { kind: "sub", value: "alice", beforeMs: 500 },
  ]);

  for (const [kind, value, madeMs, isRevoked] of [
    ["id", "all", 9e15, true],
    ["id", "all", null, true],
    ["id", "other", null, false],
    ["sub", "all", null, false],
    ["sub", "alice", 999, true],
    ["sub", "alice", 1000, false],
    ["sub", "alice", null, true],
    ["jti", "alice", null, false],
  ] as const)
    test(`${isRevoked ? "ends" : "does not end"} ${kind} ${value} made at ${madeMs}, and tickets for it`, () => {
      assert.equal(revocations.has(kind, value, madeMs), isRevoked);
      assert.equal(revocations.hasTag(tagOf(kind, value), madeMs), isRevoked);
    });

  test("has a tag that names nobody, and is the same each time", () => {
    assert.equal(tagOf("id", "ci"), "isH4aiiOG8-RrCwki");
    assert.match(tagOf("sub", "alice"), /^s[\w-]{16}$/);
    assert.match(tagOf("jti", "1"), /^j[\w-]{16}$/);
  });
});
