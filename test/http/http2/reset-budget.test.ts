import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientResets, ResetBudget } from "../../../src/http/http2/reset-budget.js";

const PROXY = from("10.0.0.1");
const CLIENT = from("192.0.2.1");

function from(remoteAddress: string): { remoteAddress: string; localAddress: string; destroyed: boolean } {
  return { remoteAddress, localAddress: "192.0.2.250", destroyed: false };
}

function clientResets(): ClientResets {
  return new ClientResets({ isTrusted: ({ remoteAddress }) => remoteAddress === PROXY.remoteAddress });
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

test("all connections of a client have 1,024 resets a second, and 32 more each", () => {
  const resets = clientResets();
  const budgets = Array.from({ length: 3 }, () => new ResetBudget(resets, CLIENT, 1000));
  for (const budget of budgets.slice(0, 2)) assert.ok(budget.spend(1000, 512));
  const [, , third] = budgets;
  assert.ok(third?.spend(1000, 32 + 1024 - 2 * (512 - 32)));
  assert.equal(third?.spend(1000), false);
  const later = new ResetBudget(resets, CLIENT, 1000);
  assert.ok(later.spend(1000, 32));
  assert.equal(later.spend(1000), false);
  assert.ok(new ResetBudget(resets, from("192.0.2.2"), 1000).spend(1000, 512), "another client");
  assert.ok(new ResetBudget(resets, CLIENT, 2000).spend(2000, 512), "a second later");
});

test("the connections of a trusted proxy count one by one", () => {
  const resets = clientResets();
  for (let count = 0; count < 10; count += 1) {
    const budget = new ResetBudget(resets, PROXY, 1000);
    assert.ok(budget.spend(1000, 512));
    assert.equal(budget.spend(1000), false);
  }
});
