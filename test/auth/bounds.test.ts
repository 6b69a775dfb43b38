import assert from "node:assert/strict";
import test from "node:test";
import { AUTH_BOUNDS, REMEMBERED_BOUNDS } from "../../src/auth/bounds.js";

test("what a file may hold fits into memory many times", () => {
  for (const bound of [...Object.values(AUTH_BOUNDS), ...Object.values(REMEMBERED_BOUNDS)]) assert.ok(bound > 0 && bound <= 2 ** 24);
});
