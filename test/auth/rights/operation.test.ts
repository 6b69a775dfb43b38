import assert from "node:assert/strict";
import test from "node:test";
import { isOperation, OPERATIONS } from "../../../src/auth/rights/operation.js";

test("an operation is one of the list, by its exact name", () => {
  for (const operation of OPERATIONS) assert.equal(isOperation(operation), true, operation);
  for (const other of ["Read", "write", "", "toString", 1, null, undefined, ["read"]])
    assert.equal(isOperation(other), false, String(other));
});
