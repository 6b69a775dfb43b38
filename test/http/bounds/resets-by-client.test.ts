import assert from "node:assert/strict";
import { test } from "node:test";
import { ResetsByClient } from "../../../src/http/bounds/resets-by-client.js";
import { ResetBudget } from "../../../src/http/http2/reset-budget.js";

const PROXY = from("10.0.0.1");
const CLIENT = from("192.0.2.1");

function from(remoteAddress: string): { remoteAddress: string; localAddress: string; destroyed: boolean } {
  return { remoteAddress, localAddress: "192.0.2.250", destroyed: false };
}

function clientResets(): ResetsByClient {
  return new ResetsByClient({ isTrusted: ({ remoteAddress }) => remoteAddress === PROXY.remoteAddress });
}

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
