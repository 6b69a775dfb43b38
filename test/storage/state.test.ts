import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_PRODUCERS, MutableState } from "../../src/storage/state.js";
import { recordOf } from "../helpers/engine.js";

test("a record moves the tail by the payload's length, wherever the payload is", () => {
  const state = new MutableState();
  state.apply(recordOf("ignored"), 1_000_000);
  state.apply(recordOf(""), 0);
  assert.equal(state.tail, 1_000_000);
});

test("what a record does not mention stays as it is", () => {
  const state = new MutableState();
  state.apply(recordOf("", { seq: "7", producer: { id: "p", epoch: 1, seq: 2 }, atMs: 50 }), 3);
  state.apply(recordOf("", { atMs: 40 }), 2);
  assert.equal(state.lastSeq, "7");
  assert.equal(state.touchedAtMs, 50, "time never goes back");
  assert.equal(state.closed, false);
  assert.deepEqual([...(state.producers ?? [])], [["p", { epoch: 1, seq: 2, atMs: 50 }]]);
});

test("closure remembers when, and the producer's append that closed", () => {
  const [byNobody, byProducer] = [new MutableState(), new MutableState()];
  const producer = { id: "p", epoch: 0, seq: 9 };
  byNobody.apply(recordOf("", { closes: true, atMs: 7 }), 0);
  byProducer.apply(recordOf("", { closes: true, producer, atMs: 8 }), 0);
  assert.deepEqual([byNobody.closed, byNobody.closedAtMs, byNobody.closedBy], [true, 7, null]);
  assert.deepEqual([byProducer.closed, byProducer.closedAtMs, byProducer.closedBy], [true, 8, producer]);
  assert.equal(new MutableState().closedAtMs, null);
});

test("the producers' order is that of their last activity, and one too many pushes out the first", () => {
  const state = new MutableState();
  for (let index = 0; index < MAX_PRODUCERS; index += 1)
    state.apply(recordOf("", { producer: { id: `p${index}`, epoch: 0, seq: 0 }, atMs: index }), 0);
  state.apply(recordOf("", { producer: { id: "p0", epoch: 0, seq: 1 }, atMs: 10_000 }), 0);
  assert.equal(state.producers?.size, MAX_PRODUCERS);
  state.apply(recordOf("", { producer: { id: "new", epoch: 0, seq: 0 }, atMs: 10_001 }), 0);
  assert.equal(state.producers?.size, MAX_PRODUCERS);
  assert.equal(state.producers?.has("p1"), false);
  assert.deepEqual(state.producers?.get("p0"), { epoch: 0, seq: 1, atMs: 10_000 });
  assert.deepEqual([...(state.producers?.keys() ?? [])].slice(-2), ["p0", "new"]);
});

test("a clone is equal, and later records do not reach it", () => {
  const state = new MutableState();
  state.apply(recordOf("", { seq: "a", producer: { id: "p", epoch: 0, seq: 0 }, atMs: 1 }), 5);
  const copy = state.clone();
  assert.deepEqual(copy, state);
  state.apply(recordOf("", { seq: "b", producer: { id: "p", epoch: 0, seq: 1 }, atMs: 2, closes: true }), 5);
  assert.equal(copy.closedAtMs, null);
  assert.equal(state.clone().closedAtMs, 2);
  assert.deepEqual([copy.tail, copy.lastSeq, copy.closed, copy.touchedAtMs, copy.producers?.get("p")?.seq], [5, "a", false, 1, 0]);
  assert.equal(new MutableState().clone().producers, null);
});
