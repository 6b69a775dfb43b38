import assert from "node:assert/strict";
import { test } from "node:test";
import { ResetBudget, type ClientResets } from "../../../src/http/http2/reset-budget.js";

const CLIENT = { remoteAddress: "192.0.2.1", localAddress: "192.0.2.250", destroyed: false };

/** A client that may have so many reset, and no end of them where it does not say. */
function clientResets(left = Infinity): ClientResets {
  return { clientOf: ({ remoteAddress }) => remoteAddress ?? null, spend: () => (left -= 1) >= 0 };
}

test("512 streams may be reset at once, and 32 each second after that", () => {
  const budget = new ResetBudget(clientResets(), CLIENT, 1000);
  for (let count = 0; count < 512; count += 1) assert.ok(budget.spend(1000));
  assert.equal(budget.spend(1000), false);
  for (let count = 0; count < 31; count += 1) assert.ok(budget.spend(2000), `${count}`);
  assert.equal(budget.spend(2000), false);
});

test("several resets count as that many", () => {
  const resets = clientResets();
  assert.ok(new ResetBudget(resets, CLIENT, 1000).spend(1000, 512));
  assert.equal(new ResetBudget(resets, CLIENT, 1000).spend(1000, 513), false);
});

test("a clock that is set back gives nothing, and takes nothing", () => {
  const budget = new ResetBudget(clientResets(), CLIENT, 1000);
  for (let count = 0; count < 512; count += 1) assert.ok(budget.spend(0));
  assert.equal(budget.spend(0), false);
});

test("those beyond the first 32 count for the client", () => {
  const budget = new ResetBudget(clientResets(3), CLIENT, 1000);
  assert.ok(budget.spend(1000, 32));
  assert.equal(budget.hasMany, false);
  assert.ok(budget.spend(1000, 3));
  assert.equal(budget.hasMany, true);
  assert.equal(budget.spend(1000), false);
});
