import assert from "node:assert/strict";
import { test } from "node:test";
import { ResetBudget } from "../../../src/http/http2/reset-budget.js";

test("512 streams may be reset at once, and 32 each second after that", () => {
  const budget = new ResetBudget(1000);
  for (let count = 0; count < 512; count += 1) assert.ok(budget.spend(1000));
  assert.equal(budget.spend(1000), false);
  for (let count = 0; count < 31; count += 1) assert.ok(budget.spend(2000), `${count}`);
  assert.equal(budget.spend(2000), false);
});

test("a clock that is set back gives nothing, and takes nothing", () => {
  const budget = new ResetBudget(1000);
  for (let count = 0; count < 512; count += 1) assert.ok(budget.spend(0));
  assert.equal(budget.spend(0), false);
});
