import assert from "node:assert/strict";
import { test } from "node:test";
import { BodyBlocks } from "../../../src/protocol/json/body-blocks.js";
import { seededRandom, seedOfRun } from "../seeded-random.js";

const KiB = 1024;

test("the blocks of a body join parts of any size in order, with room for nothing else", () => {
  const seed = seedOfRun();
  const random = seededRandom(seed);
  for (let round = 0; round < 60; round++) {
    const length = Math.floor(random() ** 3 * 600 * KiB);
    const bytes = Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
    const isPromised = random() < 0.5;
    const blocks = new BodyBlocks(isPromised ? length : null);
    for (let from = 0; from < length;) {
      const partLength = Math.ceil(random() ** 6 * 100 * KiB);
      // With memory of its own, as Node's parser gives it, or with a share of some.
      const part = bytes.subarray(from, from + partLength);
      blocks.add(random() < 0.5 ? part : Buffer.from(new Uint8Array(part).buffer));
      from += partLength;
    }
    const message = `seed ${seed}, round ${round}`;
    assert.equal(blocks.length, length, message);
    const joined = blocks.join();
    assert.ok(joined.equals(bytes), message);
    if (length > 0) assert.equal(joined.buffer.byteLength, joined.length, message);
    assert.deepEqual([blocks.length, blocks.join().length], [0, 0], message);
  }
});

test("the blocks of a body take at most twice its bytes and a block, whatever length is promised", () => {
  for (const [partLength, promised] of [
    [1, null],
    [1, 1024 ** 3],
    [7, null],
    [16 * KiB, null],
    [40 * KiB + 1, 1024 ** 3],
  ] as const) {
    const blocks = new BodyBlocks(promised);
    assert.equal(blocks.capacity, 0);
    for (let length = 0; length < 1024 * KiB; length += partLength) {
      blocks.add(Buffer.alloc(partLength));
      assert.ok(blocks.capacity <= 2 * blocks.length + 64 * KiB, `${blocks.capacity} for ${blocks.length}`);
      assert.ok(blocks.capacity <= blocks.length + 256 * KiB, `${blocks.capacity} for ${blocks.length}`);
    }
  }
});

test("the blocks of a body whose small promised length is kept copy it once", () => {
  const blocks = new BodyBlocks(5);
  blocks.add(Buffer.from("he"));
  assert.equal(blocks.capacity, 5);
  blocks.add(Buffer.from("llo"));
  assert.equal(blocks.join().toString(), "hello");
  const broken = new BodyBlocks(2);
  broken.add(Buffer.from("hello"));
  assert.equal(broken.join().toString(), "hello");
});

test("the blocks of a body that is too much for one turn of the event loop are joined in several", async () => {
  const MiB = 1024 * KiB;
  const small = new BodyBlocks();
  small.add(Buffer.alloc(MiB + 1, "x"));
  const joined = small.joinInTurns();
  assert.ok(Buffer.isBuffer(joined) && joined.length === MiB + 1, "at once");
  const large = new BodyBlocks();
  for (let part = 0; part < 100; part += 1) large.add(Buffer.alloc(MiB, part));
  let turns = 0;
  const count = (): void => {
    turns += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const bytes = await large.joinInTurns();
  clearImmediate(counting);
  assert.ok(turns >= 2, `${turns} turns for 100 MiB`);
  assert.equal(bytes.length, 100 * MiB);
  for (let part = 0; part < 100; part += 1) assert.deepEqual([bytes[part * MiB], bytes[(part + 1) * MiB - 1]], [part, part]);
});
