import assert from "node:assert/strict";
import test from "node:test";
import { fixedKeys } from "../../../src/auth/jwt/key-source.js";
import { secretKey } from "../../../src/auth/jwt/verification-key.js";
import { SECRET } from "../../helpers/jwt.js";

test("fixed keys are found at once, or never", () => {
  const key = secretKey(SECRET);
  const source = fixedKeys([key]);
  assert.equal(source.keyFor({ alg: "HS256", kid: null }, ["HS256"]), key);
  assert.equal(source.keyFor({ alg: "EdDSA", kid: null }, ["HS256"]), "unknown");
  assert.equal(
    source.has((print) => print === key.print),
    true,
  );
  assert.equal(
    source.has((print) => print === "other"),
    false,
  );
});
