import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Storage, type StoredStream } from "../../src/storage/storage.js";
import { append, bytesOf, created, forked, loaded, readAll, recordOf, remove, settled } from "../helpers/engine.js";
import { observing, type StorageFactory } from "./storage-under-test.js";

/** What any engine gives to readers, and tells observers. */
export function readsContract(open: StorageFactory): void {
  describe("reads", () => testReads(open));
  describe("observers", () => testObservers(open));
}

function testReads(open: StorageFactory): void {
  test("any range of a stream reads as it was written, in memory and after a restart", async (t) => {
    const { storage, restart } = await open(t);
    const stream = await created(storage, "s");
    const parts = Array.from({ length: 40 }, (_, index) => bytesOf(1 + ((index * 377) % 1500), index));
    let tail = 0;
    for (const part of parts) {
      assert.equal(await append(storage, stream, part, tail), "durable");
      tail += part.length;
    }
    const whole = Buffer.concat(parts);
    for (const engine of [storage, await restart()]) {
      const again = await loaded(engine, "s");
      assert.equal(again.state.tail, tail);
      for (const [from, maxBytes] of [
        [0, 1],
        [0, 100_000],
        [1, 4096],
        [4095, 2],
        [4096, 4096],
        [tail - 1, 50],
        [tail >> 1, 700],
      ] as const) {
        const piece = await engine.read(again, from, maxBytes);
        assert.ok(piece.length >= 1 && piece.length <= maxBytes);
        assert.deepEqual(piece, whole.subarray(from, from + piece.length), `${from}, at most ${maxBytes}`);
      }
      for (const maxBytes of [997, 100_000]) assert.deepEqual(await readAll(engine, again, 0, maxBytes), whole);
    }
  });

  test("a read can end where an append ended, in memory, in files, after a restart and in a fork", async (t) => {
    const { storage, restart } = await open(t);
    const stream = await created(storage, "s");
    const ends: number[] = [];
    let tail = 0;
    const grow = async (engine: Storage, stored: StoredStream, appends: number): Promise<void> => {
      const sizes = Array.from({ length: appends }, (_, index) => 1 + (((ends.length + index) * 377) % (index % 11 === 0 ? 1500 : 40)));
      const outcomes = sizes.map((size, index) => {
        const outcome = append(engine, stored, recordOf(bytesOf(size, index), { messages: 1 + (index % 3), atMs: 1000 * index }), tail);
        ends.push((tail += size));
        return outcome;
      });
      assert.deepEqual([...new Set(await Promise.all(outcomes))], ["durable"]);
    };
    const check = async (engine: Storage, stored: StoredStream, own: readonly number[]): Promise<void> => {
      for (let from = 0; from < tail; from += 613) {
        for (const maxBytes of [1, 50, 1000, 5000].filter((most) => from + most < stored.state.tail)) {
          const expected = own.findLast((end) => end > from && end <= from + maxBytes) ?? own.find((end) => end > from + maxBytes);
          assert.equal(await engine.endOfRead(stored, from, maxBytes), expected, `${stored.name}: from ${from}, about ${maxBytes}`);
        }
      }
    };
    for (let round = 0; round < 4; round += 1) {
      await grow(storage, stream, 300);
      await check(storage, stream, ends);
      await storage.persist(stream);
      await check(storage, stream, ends);
    }
    const point = (ends[700] ?? 0) + 1;
    const fork = await forked(storage, stream, "fork", point);
    await grow(storage, stream, 3);
    assert.equal(await append(storage, fork, "own", point), "durable");
    const forkEnds = [...ends.filter((end) => end < point), point, point + 3];
    await check(storage, fork, forkEnds);
    const again = await restart();
    const source = await loaded(again, "s");
    await check(again, source, ends);
    await grow(again, source, 50);
    await check(again, source, ends);
    await check(again, await loaded(again, "fork"), forkEnds);
  });

  test("forks of forks have what they share, however little that is of their sources, and then their own", async (t) => {
    const { storage, restart } = await open(t);
    const first = await created(storage, "first", "abcdef");
    const second = await forked(storage, first, "second", 4, "GH");
    const third = await forked(storage, second, "third", 2, "Z");
    const fourth = await forked(storage, third, "fourth", 3);
    assert.equal(await append(storage, fourth, "!", 3), "durable");
    for (const engine of [storage, await restart()]) {
      for (const [name, expected, firstEnd] of [
        ["second", "abcdGH", 4],
        ["third", "abZ", 2],
        ["fourth", "abZ!", 2],
      ] as const) {
        const fork = await loaded(engine, name);
        assert.equal((await readAll(engine, fork)).toString(), expected);
        assert.equal(await engine.endOfRead(fork, 0, 2), firstEnd);
        assert.equal(await engine.endOfRead(fork, 1, 1), firstEnd);
      }
    }
  });

  test("places in forks of forks are found in what they share, however little that is, and never beyond their tails", async (t) => {
    const { storage, restart } = await open(t);
    const first = await created(storage, "first");
    for (let index = 0; index < 10; index += 1)
      assert.equal(await append(storage, first, recordOf(bytesOf(2, index), { atMs: 10 * index }), 2 * index), "durable");
    const second = await forked(storage, first, "second", 20);
    const third = await forked(storage, second, "third", 10);
    const fourth = await forked(storage, third, "fourth", 9);
    assert.equal(await append(storage, fourth, recordOf("!", { atMs: 100 }), 9), "durable");
    for (const engine of [storage, await restart()]) {
      for (const [name, last, since] of [
        ["third", [8, 6, 4, 2, 0, 0], [0, 2, 8, 10, 10]],
        ["fourth", [9, 8, 6, 4, 2, 0, 0], [0, 2, 8, 9, 9]],
      ] as const) {
        const fork = await loaded(engine, name);
        for (const [index, position] of last.entries())
          assert.deepEqual(await engine.placeOfLast(fork, index + 1, () => 1), { position, skip: 0 }, `${name}: the last ${index + 1}`);
        for (const [index, atMs] of [0, 10, 40, 50, 90].entries())
          assert.equal(await engine.placeSince(fork, atMs), since[index], `${name}: since ${atMs}`);
      }
    }
  });

  test("every position has a segment before it that it is in or at the end of", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s");
    assert.equal(stream.partStartBefore(0), 0);
    assert.equal(stream.hasPart(0, 0), true);
    for (let index = 0; index < 30; index += 1) await append(storage, stream, bytesOf(1000, index), index * 1000);
    for (let position = 0; position <= 30_000; position += 250) {
      const start = stream.partStartBefore(position);
      assert.ok(start <= position);
      assert.equal(stream.hasPart(start, position - start), true, `position ${position}`);
    }
    assert.equal(stream.hasPart(0, 30_001), false);
    assert.equal(stream.hasPart(1, 0), false);
    assert.equal(stream.hasPart(30_001, 0), false);
  });
}

function testObservers(open: StorageFactory): void {
  test("an observer is told of every advance in order, and then that all of it is there", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s");
    const told: string[] = [];
    stream.observer = observing(told);
    await Promise.all([
      append(storage, stream, "abc", 0),
      append(storage, stream, "de", 3),
      append(storage, stream, recordOf("", { closes: true }), 5),
    ]);
    await settled(storage, stream);
    assert.deepEqual(
      told.filter((line) => line !== "settled"),
      ["0..3 open", "3..5 open", "5..5 closed"],
    );
    assert.equal(told.at(-1), "settled");
  });

  test("an observer is told when the stream is gone", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s");
    const told: string[] = [];
    stream.observer = observing(told);
    await remove(storage, stream);
    assert.deepEqual(told, ["deleted"]);
  });

  test("noting a read tells nobody", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s");
    const told: string[] = [];
    stream.observer = observing(told);
    storage.touch(stream, 77);
    await settled(storage, stream);
    assert.deepEqual(told, []);
    assert.equal(stream.state.touchedAtMs, 77);
  });
}
