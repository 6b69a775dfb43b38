import assert from "node:assert/strict";
import test from "node:test";
import { KnownCaller } from "../../src/auth/known-caller.js";

test("a caller says what it is known by to this room only", () => {
  const right = { grant: 1, rate: null };
  const caller = new KnownCaller("token a", 5, { rightTo: (operation) => (operation === "read" ? right : null) }, { kind: "public" });
  assert.equal(caller.rightTo("read", "a"), right);
  assert.equal(caller.rightTo("append", "a"), null);
  assert.deepEqual(KnownCaller.basisOf(caller), { kind: "public" });
  assert.equal(KnownCaller.basisOf({ id: null, endsAtMs: 5, rightTo: () => right }), null);
  assert.deepEqual(Object.keys(caller), ["id", "endsAtMs"], "nothing else reaches a log");
});
