import assert from "node:assert/strict";
import { test } from "node:test";
import { SpareBlocks } from "../../../../src/storage/file/memory/spare-blocks.js";

const BYTES = 64;
const made = (): Buffer => Buffer.allocUnsafeSlow(BYTES);

test("with the first block all that there is room for is made, once", () => {
  const spares = new SpareBlocks(BYTES);
  assert.equal(spares.bytes, 0);
  const first = spares.take(30 * BYTES + 1);
  assert.deepEqual([first.length, spares.bytes], [BYTES, 29 * BYTES]);
  const memory = new Set([first.buffer]);
  for (let taken = 1; taken < 30; taken += 1) memory.add(spares.take(0).buffer);
  assert.deepEqual([memory.size, spares.bytes], [30, 0]);
  assert.equal(spares.take(100 * BYTES).length, BYTES);
  assert.equal(spares.bytes, 0, "not a second time");
});

test("at most 1,024 blocks are made at a time, and one where there is no room", () => {
  const spares = new SpareBlocks(BYTES);
  spares.take(1e9);
  assert.equal(spares.bytes, 1023 * BYTES);
  const full = new SpareBlocks(BYTES);
  assert.equal(full.take(-1).length, BYTES);
  assert.equal(full.bytes, 0);
});

test("what was given last is used first, and is dropped where there is no room", () => {
  const spares = new SpareBlocks(BYTES);
  spares.take(0);
  const blocks = Array.from({ length: 40 }, made);
  for (const block of blocks) spares.give(block, 30 * BYTES);
  assert.equal(spares.bytes, 30 * BYTES);
  const last = made();
  spares.give(last, 31 * BYTES);
  assert.equal(spares.take(0), last);
});

test("sixteen wait whatever there is room for", () => {
  const spares = new SpareBlocks(BYTES);
  spares.take(100 * BYTES);
  spares.fit(50 * BYTES);
  assert.equal(spares.bytes, 50 * BYTES);
  spares.fit(-1);
  assert.equal(spares.bytes, 16 * BYTES);
  for (let given = 0; given < 5; given += 1) spares.give(made(), 0);
  assert.equal(spares.bytes, 16 * BYTES);
});
