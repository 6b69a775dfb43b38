import assert from "node:assert/strict";
import { test } from "node:test";
import { combineCrc32, crc32, crc32InTurns } from "../../../../src/storage/file/format/crc32.js";
import { bytesOf } from "../../../helpers/engine.js";

test("the CRC is that of zlib and gzip", () => {
  assert.equal(crc32(Buffer.from("123456789")), 0xcbf43926);
  assert.equal(crc32(Buffer.alloc(0)), 0);
});

test("a CRC can be carried on", () => {
  const bytes = bytesOf(1000);
  assert.equal(crc32(bytes.subarray(300), crc32(bytes.subarray(0, 300))), crc32(bytes));
});

test("the CRC of very much is the same, in several turns of the event loop", async () => {
  const bytes = Buffer.alloc(70 * 1024 * 1024, bytesOf(1021));
  let turns = 0;
  const count = (): void => {
    turns += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  assert.equal(await crc32InTurns(bytes), crc32(bytes));
  clearImmediate(counting);
  assert.ok(turns >= 2, `${turns} turns for 70 MiB`);
  assert.equal(await crc32InTurns(Buffer.from("123456789")), 0xcbf43926);
});

test("the CRC of two runs is combined from theirs, at any length", () => {
  for (const [first, second] of [
    [0, 0],
    [0, 5],
    [5, 0],
    [1, 1],
    [3, 255],
    [256, 256],
    [1000, 65_537],
    [70_000, 1],
  ] as const) {
    const [left, right] = [bytesOf(first, 1), bytesOf(second, 2)];
    assert.equal(combineCrc32(crc32(left), crc32(right), second), crc32(Buffer.concat([left, right])), `${first} and ${second}`);
  }
});

test("combining takes lengths beyond 2^32", () => {
  // Zeros in front of nothing: the CRC of n zero bytes after a run, in two steps and in one.
  const start = crc32(Buffer.from("start"));
  const zeros = (length: number): number => crcOfZeros(length);
  const half = combineCrc32(start, zeros(2 ** 32), 2 ** 32);
  assert.equal(combineCrc32(half, zeros(2 ** 32), 2 ** 32), combineCrc32(start, zeros(2 ** 33), 2 ** 33));
});

/** The CRC of `length` zero bytes, a power of two, by doubling. */
function crcOfZeros(length: number): number {
  let crc = crc32(Buffer.alloc(1));
  for (let have = 1; have < length; have *= 2) crc = combineCrc32(crc, crc, have);
  return crc;
}
