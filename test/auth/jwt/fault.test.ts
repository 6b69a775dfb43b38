import assert from "node:assert/strict";
import test from "node:test";
import { detailOf, jwtFault } from "../../../src/auth/jwt/fault.js";

test("a refusal is one sentence that repeats nothing of the token", () => {
  assert.deepEqual(jwtFault("over"), { kind: "fault", code: "over" });
  assert.equal(detailOf(jwtFault("over")), "The JWT is over.");
});
