import assert from "node:assert/strict";
import { test } from "node:test";
import { chain } from "../../../src/stream/loaded/chain.js";

test("a value that is there goes on at once", () =>
  assert.equal(
    chain(2, (value) => value + 1),
    3,
  ));

test("a value that comes later goes on then", async () => {
  const result = chain(Promise.resolve(2), (value) => value + 1);
  assert.ok(result instanceof Promise);
  assert.equal(await result, 3);
});

test("a fault goes through", async () => {
  await assert.rejects(async () => chain(Promise.reject(new Error("no")), () => 1), /no/);
  assert.throws(() => chain(1, () => assert.fail("no")), /no/);
});
