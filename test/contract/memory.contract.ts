import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TrimmedStreamError, type ListedStream } from "../../src/storage/storage.js";
import { append, bytesOf, configOf, created, loaded, readAll, recordOf, remove, settled } from "../helpers/engine.js";
import { observing, type StorageFactory } from "./storage-under-test.js";
import { trimBefore } from "../helpers/trim.js";

/** What any engine drops: what a trim covers, and what memory need not have. */
export function memoryContract(open: StorageFactory): void {
  describe("trims", () => testTrims(open));
  describe("memory", () => testMemory(open));
}

function testTrims(open: StorageFactory): void {
  test("nothing is dropped that a trim does not cover whole", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s", bytesOf(1000));
    trimBefore(storage, stream, 999);
    trimBefore(storage, stream, 0);
    await settled(storage, stream);
    assert.equal(stream.earliest, 0);
    assert.deepEqual(await readAll(storage, stream), bytesOf(1000));
  });

  test("what is dropped can't be read, what is kept is where it was, also after a restart", async (t) => {
    const { storage, restart } = await open(t);
    const stream = await created(storage, "s");
    await append(storage, stream, recordOf(bytesOf(5000, 0), { atMs: 100 }));
    await append(storage, stream, recordOf(bytesOf(5000, 1), { atMs: 200 }));
    await append(storage, stream, recordOf(bytesOf(5000, 2), { atMs: 300 }));
    const starts = [5000, 5001, 15_000].map((position) => stream.partStartBefore(position));
    trimBefore(storage, stream, 5000);
    await settled(storage, stream);
    for (const engine of [storage, await restart()]) {
      const kept = await loaded(engine, "s");
      assert.equal(kept.earliest, 5000);
      assert.deepEqual(
        [5000, 5001, 15_000].map((position) => kept.partStartBefore(position)),
        starts,
      );
      assert.equal(kept.hasPart(0, 5000), true);
      await assert.rejects(async () => engine.read(kept, 4999, 1), TrimmedStreamError);
      assert.deepEqual(await readAll(engine, kept), Buffer.concat([bytesOf(5000, 1), bytesOf(5000, 2)]));
    }
  });

  test("all of a stream can go, and it goes on where it was", async (t) => {
    const { storage, restart } = await open(t);
    const stream = await created(storage, "s", bytesOf(300));
    const start = stream.partStartBefore(300);
    trimBefore(storage, stream, 300);
    await settled(storage, stream);
    assert.deepEqual([stream.earliest, stream.state.tail, stream.partStartBefore(300)], [300, 300, start]);
    const again = await restart();
    const kept = await loaded(again, "s");
    assert.deepEqual([kept.earliest, kept.state.tail, kept.partStartBefore(300)], [300, 300, start]);
    await append(again, kept, recordOf("on"));
    assert.equal((await readAll(again, kept)).toString(), "on");
    assert.equal(kept.hasPart(start, 300 - start), true);
    assert.equal((await readAll(again, await loaded(again, "s"))).toString(), "on");
  });

  test("appends on their way are kept, whatever goes before them", async (t) => {
    const { storage, restart } = await open(t);
    const stream = await created(storage, "s", bytesOf(10));
    const under = append(storage, stream, recordOf("way"));
    trimBefore(storage, stream, 10);
    await under;
    trimBefore(storage, stream, stream.state.tail);
    const more = append(storage, stream, recordOf("more"));
    await more;
    const kept = await loaded(await restart(), "s");
    assert.deepEqual([kept.earliest, kept.state.tail], [13, 17]);
  });
}

function testMemory(open: StorageFactory): void {
  test("a persisted stream can be released, and is the same when it is loaded again", async (t) => {
    const { storage, isShared = false } = await open(t);
    const stream = await created(storage, "s", "", { ttlSeconds: 9 });
    await append(storage, stream, recordOf(bytesOf(5000), { producer: { id: "p", epoch: 0, seq: 0 }, seq: "1", atMs: 3 }), 0);
    if (!isShared) assert.equal(storage.release(stream), false);
    await storage.persist(stream);
    assert.equal(storage.release(stream), true);
    const again = await loaded(storage, "s");
    assert.notEqual(again, stream);
    assert.equal(again.id, stream.id);
    assert.deepEqual(again.config, stream.config);
    assert.deepEqual(again.state, stream.state);
    assert.deepEqual(await readAll(storage, again), bytesOf(5000));
    assert.equal(await append(storage, again, "!", 5000), "durable");
  });

  test("a stream with an observer or a change under way is not released", async (t) => {
    const { storage, isShared = false } = await open(t);
    const stream = await created(storage, "s");
    await storage.persist(stream);
    stream.observer = observing([]);
    assert.equal(storage.release(stream), false);
    stream.observer = null;
    const appended = append(storage, stream, "x", 0);
    assert.equal(storage.release(stream), false);
    await appended;
    assert.equal(storage.release(stream), isShared);
  });

  test("list finds every stream after a restart, and nothing else", async (t) => {
    const { storage, restart } = await open(t);
    for (const name of ["a", "b/c", "B"]) await created(storage, name, "x", { ttlSeconds: 5 });
    const gone = await created(storage, "gone");
    storage.touch(gone, 8);
    await remove(storage, gone);
    const touched = await loaded(storage, "a");
    storage.touch(touched, 4242);
    const found: ListedStream[] = [];
    for await (const listed of (await restart()).list()) found.push(listed);
    assert.deepEqual(found.map(({ name }) => name).sort(), ["B", "a", "b/c"]);
    const a = found.find(({ name }) => name === "a");
    assert.deepEqual([a?.config, a?.touchedAtMs, a?.tail], [configOf({ ttlSeconds: 5 }), 4242, 1]);
    for (const [maxBytes, maxAgeMs, isExcess] of [
      [0, Infinity, true],
      [1, Infinity, false],
      [1, 99, true],
      [1, 100, false],
    ] as const)
      assert.equal(await a?.isExcess({ maxBytes, maxAgeMs }, 100), isExcess);
  });

  test("an engine at work is healthy", async (t) => {
    const { storage } = await open(t);
    assert.deepEqual(storage.health(), { writable: true, reason: null, damagedStreams: 0 });
  });
}
