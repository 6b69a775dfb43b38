import assert from "node:assert/strict";
import { test } from "node:test";
import { ServingTurn, ServingTurns } from "../../../src/http/http2/serving-turns.js";

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test("16 requests of each connection that is bounded are served in a turn, all in their order", async () => {
  const turns = new ServingTurns();
  const served: number[][] = [[], []];
  for (const list of served) {
    const turn = new ServingTurn(turns);
    for (let at = 0; at < 40; at += 1) turn.add({ isOver: false, serve: () => list.push(at) }, true);
  }
  const counts = (): number[] => served.map(({ length }) => length);
  assert.deepEqual(counts(), [16, 16]);
  await nextTurn();
  assert.deepEqual(counts(), [32, 32]);
  await nextTurn();
  const all = Array.from({ length: 40 }, (_, at) => at);
  assert.deepEqual(served, [all, all]);
});

test("what is over before its turn is not served, and takes no turn", async () => {
  const turns = new ServingTurns();
  const turn = new ServingTurn(turns);
  const served: number[] = [];
  const requests = Array.from({ length: 100 }, (_, at) => ({ isOver: false, serve: () => served.push(at) }));
  for (const request of requests) turn.add(request, true);
  for (const request of requests.slice(0, 90)) request.isOver = true;
  await nextTurn();
  assert.deepEqual(served.slice(16), [90, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
});

test("a request that comes while others wait is behind them", async () => {
  const turns = new ServingTurns();
  const turn = new ServingTurn(turns);
  const served: number[] = [];
  for (let at = 0; at < 33; at += 1) turn.add({ isOver: false, serve: () => served.push(at) }, true);
  await nextTurn();
  turn.add({ isOver: false, serve: () => served.push(33) }, false);
  assert.equal(served.length, 32);
  await nextTurn();
  assert.deepEqual(served.slice(32), [32, 33]);
});

test("a connection that is not bounded has all served at once", () => {
  const turn = new ServingTurn(new ServingTurns());
  let served = 0;
  for (let at = 0; at < 100; at += 1) turn.add({ isOver: false, serve: () => (served += 1) }, false);
  assert.equal(served, 100);
});
