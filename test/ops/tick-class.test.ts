import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { test } from "node:test";
import { keepTickClass } from "../../src/ops/tick-class.js";
import { haveSameClass } from "../helpers/hidden-class.js";

/** What Node queues for `process.nextTick`. */
function tickOfNode(): object {
  const seen: object[] = [];
  const hook = createHook({ init: (_id, type, _trigger, resource) => void (type === "TickObject" && seen.push(resource)) }).enable();
  process.nextTick(() => undefined);
  hook.disable();
  const [tick] = seen;
  assert.ok(tick !== undefined);
  return tick;
}

test("what is kept has the hidden class of what process.nextTick queues", async () => {
  assert.equal(haveSameClass(await keepTickClass(), tickOfNode()), true);
  assert.equal(haveSameClass({ callback: null, args: undefined }, tickOfNode()), false);
});

test("one is kept, however often that is asked for", async () => {
  assert.equal(await keepTickClass(), await keepTickClass());
});
