import assert from "node:assert/strict";
import { test } from "node:test";
import { refuse } from "../../../src/stream/rules/outcome.js";

test("a refusal has its code, and only what else its answer carries", () => {
  assert.deepEqual(refuse("stream-not-found"), { kind: "refused", code: "stream-not-found" });
  assert.deepEqual(refuse("producer-gap", { expectedSeq: 3, receivedSeq: 9 }), {
    kind: "refused",
    code: "producer-gap",
    expectedSeq: 3,
    receivedSeq: 9,
  });
});
