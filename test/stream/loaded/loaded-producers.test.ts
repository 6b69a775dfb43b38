import assert from "node:assert/strict";
import { test } from "node:test";
import { LoadedProducers } from "../../../src/stream/loaded/loaded-producers.js";

function streamOf(producerCount: number): { producerCount: number; countedProducers: number } {
  return { producerCount, countedProducers: 0 };
}

test("producers of streams in memory are counted as they come, and until their stream leaves", () => {
  const producers = new LoadedProducers();
  const [first, second, without] = [streamOf(1), streamOf(2), streamOf(0)];
  for (const stream of [first, second, without, first]) producers.note(stream);
  assert.deepEqual([producers.count, [...producers.streams]], [3, [first, second]]);
  first.producerCount = 5;
  producers.note(first);
  assert.equal(producers.count, 7);
  for (const stream of [first, without, first]) producers.forget(stream);
  assert.deepEqual([producers.count, [...producers.streams], first.countedProducers], [2, [second], 0]);
});
