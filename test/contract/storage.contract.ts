import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { TrimmedStreamError, type ListedStream, type Storage, type StoredStream, type StreamObserver } from "../../src/storage/storage.js";
import {
  append,
  bytesOf,
  configOf,
  created,
  forked,
  loaded,
  readAll,
  recordOf,
  remove,
  settled,
  startCreate,
  type Outcome,
} from "../helpers/engine.js";

/** An engine under test. */
export interface StorageUnderTest {
  readonly storage: Storage;
  /** Ends the engine in good order and gives one that has what it had. */
  restart(): Promise<Storage>;
}

/** Opens an engine with nothing in it; what it needs to give back at the end it hooks to `t`. */
export type StorageFactory = (t: TestContext) => Promise<StorageUnderTest>;

/** What any engine does, whatever it keeps its streams in. */
export function storageContract(engine: string, open: StorageFactory): void {
  describe(`${engine} keeps the storage contract`, () => {
    describe("creation", () => testCreation(open));
    describe("appends", () => testAppends(open));
    describe("deletion", () => testDeletion(open));
    describe("reads", () => testReads(open));
    describe("observers", () => testObservers(open));
    describe("trims", () => testTrims(open));
    describe("memory", () => testMemory(open));
  });
}

function testCreation(open: StorageFactory): void {
  test("a stream that nobody made is not there", async (t) => {
    const { storage } = await open(t);
    assert.equal(await storage.load("nobody"), null);
  });

  test("that nobody has a name can be told at once after a first look, and only then", async (t) => {
    const { storage, restart } = await open(t);
    assert.equal(storage.lacks("s"), false);
    assert.equal(await storage.load("s"), null);
    assert.equal(storage.lacks("s"), true);
    const { outcome } = startCreate(storage, "s");
    assert.equal(storage.lacks("s"), false);
    assert.equal(await outcome, "durable");
    assert.equal(storage.lacks("s"), false);
    const again = await restart();
    assert.deepEqual([again.lacks("s"), (await loaded(again, "s")).name, again.lacks("s")], [false, "s", false]);
    await again.persist(await loaded(again, "s"));
    assert.equal(again.release(await loaded(again, "s")), true);
    assert.equal(again.lacks("s"), false);
  });

  test("a created stream has its configuration, its first bytes, and an id of letters and digits", async (t) => {
    const { storage } = await open(t);
    const config = configOf({ contentType: "text/plain", createdAtMs: 1000, ttlSeconds: 60 });
    const outcome = new Promise<Outcome>((resolve) => {
      const result = storage.create("a/b c", config, recordOf("hello", { atMs: 1000 }), resolve);
      assert.ok(typeof result !== "string");
      assert.equal(result.created, false);
    });
    assert.equal(await outcome, "durable");
    const stream = await loaded(storage, "a/b c");
    assert.equal(stream.created, true);
    assert.equal(stream.name, "a/b c");
    assert.match(stream.id, /^[a-z0-9]+$/i);
    assert.deepEqual(stream.config, config);
    assert.equal(stream.earliest, 0);
    assert.equal(stream.state.tail, 5);
    assert.equal(stream.state.touchedAtMs, 1000);
    assert.equal((await readAll(storage, stream)).toString(), "hello");
  });

  test("a stream can be created closed", async (t) => {
    const { storage } = await open(t);
    const outcome = await new Promise<Outcome>(
      (resolve) => void storage.create("c", configOf(), recordOf("end", { closes: true }), resolve),
    );
    assert.equal(outcome, "durable");
    assert.equal((await loaded(storage, "c")).state.closed, true);
  });

  test("two streams have two ids", async (t) => {
    const { storage } = await open(t);
    assert.notEqual((await created(storage, "one")).id, (await created(storage, "two")).id);
  });

  test("names that differ only in case, or look like paths, are different streams", async (t) => {
    const { storage, restart } = await open(t);
    const names = ["a", "A", "a/b", "a/../b", "..", "ä", "%41", "x".repeat(1024)];
    for (const name of names) await created(storage, name, `this is ${name}`);
    const again = await restart();
    for (const name of names) assert.equal((await readAll(again, await loaded(again, name))).toString(), `this is ${name}`);
  });
}

function testAppends(open: StorageFactory): void {
  test("appends follow each other without a gap", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s", "0");
    let tail = 1;
    for (const text of ["one", "two", "three"]) {
      assert.equal(await append(storage, stream, text, tail), "durable");
      tail += text.length;
      assert.equal(stream.state.tail, tail);
    }
    assert.equal((await readAll(storage, stream)).toString(), "0onetwothree");
  });

  test("an append behind one that is not durable yet counts on it", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s");
    const outcomes = await Promise.all([
      append(storage, stream, "ab", 0),
      append(storage, stream, "cd", 2),
      append(storage, stream, "ef", 4),
    ]);
    assert.deepEqual(outcomes, ["durable", "durable", "durable"]);
    assert.equal((await readAll(storage, stream)).toString(), "abcdef");
  });

  test("an append that expects another tail is refused and changes nothing", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s", "abc");
    for (const wrong of [0, 2, 4, 100]) assert.equal(await append(storage, stream, "x", wrong), "tail-moved");
    const first = append(storage, stream, "d", 3);
    assert.equal(await append(storage, stream, "x", 3), "tail-moved");
    assert.equal(await first, "durable");
    assert.equal((await readAll(storage, stream)).toString(), "abcd");
  });

  test("bytes, producer, sequence, time and closure arrive together", async (t) => {
    const { storage, restart } = await open(t);
    const stream = await created(storage, "s");
    const producer = { id: "wörker-1", epoch: 2, seq: 2 ** 53 - 1 };
    const record = recordOf("bytes", { producer, seq: "ä-0007", atMs: 5000, closes: true });
    assert.equal(await append(storage, stream, record, 0), "durable");
    const again = await restart();
    for (const { state } of [stream, await loaded(again, "s")]) {
      assert.equal(state.tail, 5);
      assert.equal(state.closed, true);
      assert.equal(state.closedAtMs, 5000);
      assert.deepEqual(state.closedBy, producer);
      assert.equal(state.lastSeq, "ä-0007");
      assert.equal(state.touchedAtMs, 5000);
      assert.deepEqual([...(state.producers ?? [])], [["wörker-1", { epoch: 2, seq: 2 ** 53 - 1, atMs: 5000 }]]);
    }
  });

  test("an append without bytes may close, and one may only move a producer", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s", "x");
    assert.equal(await append(storage, stream, recordOf("", { producer: { id: "p", epoch: 0, seq: 0 } }), 1), "durable");
    assert.equal(await append(storage, stream, recordOf("", { closes: true }), 1), "durable");
    assert.equal(stream.state.tail, 1);
    assert.equal(stream.state.closed, true);
    assert.equal(stream.state.closedBy, null);
    assert.equal(stream.state.producers?.get("p")?.seq, 0);
  });

  test("changes of a stream settle in the order in which they were handed in, whatever their size", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s");
    const order: string[] = [];
    const sizes = [10, 6000, 20, 30, 5000, 7000, 0, 10];
    let tail = 0;
    const ends = sizes.map((size, index) => {
      const outcome = append(storage, stream, bytesOf(size, index), tail);
      const barrier = settled(storage, stream);
      tail += size;
      return [outcome.then(() => order.push(`append ${index}`)), barrier.then(() => order.push(`barrier ${index}`))];
    });
    await Promise.all(ends.flat());
    assert.deepEqual(
      order,
      sizes.flatMap((_, index) => [`append ${index}`, `barrier ${index}`]),
    );
    assert.deepEqual(await readAll(storage, stream), Buffer.concat(sizes.map((size, index) => bytesOf(size, index))));
  });

  test("state shows no change before it settles", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s");
    const ends = [0, 1, 2].map(async (index) => {
      assert.equal(await append(storage, stream, recordOf(bytesOf(9), { seq: String(index) }), index * 9), "durable");
      assert.ok(stream.state.tail >= (index + 1) * 9);
    });
    assert.equal(stream.state.tail, 0);
    assert.equal(stream.state.lastSeq, null);
    await Promise.all(ends);
  });

  test("a barrier on a stream at rest settles", async (t) => {
    const { storage } = await open(t);
    assert.equal(await settled(storage, await created(storage, "s")), "durable");
  });
}

function testDeletion(open: StorageFactory): void {
  test("a deleted stream is gone, also after a restart", async (t) => {
    const { storage, restart } = await open(t);
    const stream = await created(storage, "s", "secret");
    assert.equal(await remove(storage, stream), "durable");
    assert.equal(await storage.load("s"), null);
    assert.equal(await (await restart()).load("s"), null);
  });

  test("a name can be used again as soon as that is durable, and nothing of the old stream shows in the new one", async (t) => {
    const { storage, restart } = await open(t);
    const old = await created(storage, "s", "old bytes");
    await append(storage, old, recordOf("more", { producer: { id: "p", epoch: 1, seq: 0 }, seq: "9", closes: true }), 9);
    const next = await new Promise<Promise<Outcome>>((resolve, reject) => {
      const rejection = storage.delete(old, (how) =>
        how === "durable" ? resolve(startCreate(storage, "s", "new").outcome) : reject(new Error(how)),
      );
      assert.equal(rejection, null);
    });
    assert.equal(await next, "durable");
    for (const engine of [storage, await restart()]) {
      const stream = await loaded(engine, "s");
      assert.notEqual(stream.id, old.id);
      assert.equal(stream.state.closed, false);
      assert.equal(stream.state.lastSeq, null);
      assert.equal(stream.state.producers, null);
      assert.equal((await readAll(engine, stream)).toString(), "new");
    }
  });

  test("a name that is not free, or not yet, is not given out again", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s");
    await assert.rejects(startCreate(storage, "s").outcome, RangeError);
    const gone = remove(storage, stream);
    await assert.rejects(startCreate(storage, "s").outcome, RangeError);
    assert.equal(await gone, "durable");
    assert.equal(await startCreate(storage, "s").outcome, "durable");
  });

  test("one name can be made and deleted over and over", async (t) => {
    const { storage, restart } = await open(t);
    const outcomes: Promise<Outcome>[] = [];
    for (let round = 0; round < 20; round += 1) {
      const { stream, outcome } = startCreate(storage, "s", `round ${round}`);
      assert.ok(stream !== null);
      outcomes.push(outcome, append(storage, stream, "!", `round ${round}`.length));
      if (round < 19) assert.equal(await remove(storage, stream), "durable");
    }
    assert.deepEqual([...new Set(await Promise.all(outcomes))], ["durable"]);
    for (const engine of [storage, await restart()]) {
      assert.equal((await readAll(engine, await loaded(engine, "s"))).toString(), "round 19!");
    }
  });
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

  test("every position has a segment before it that it is in or at the end of", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s");
    assert.equal(stream.segmentStartBefore(0), 0);
    assert.equal(stream.hasSegment(0, 0), true);
    for (let index = 0; index < 30; index += 1) await append(storage, stream, bytesOf(1000, index), index * 1000);
    for (let position = 0; position <= 30_000; position += 250) {
      const start = stream.segmentStartBefore(position);
      assert.ok(start <= position);
      assert.equal(stream.hasSegment(start, position - start), true, `position ${position}`);
    }
    assert.equal(stream.hasSegment(0, 30_001), false);
    assert.equal(stream.hasSegment(1, 0), false);
    assert.equal(stream.hasSegment(30_001, 0), false);
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

function observing(told: string[]): StreamObserver {
  return {
    advanced: (from, to, closed) => told.push(`${from}..${to} ${closed ? "closed" : "open"}`),
    settled: () => told.push("settled"),
    deleted: () => told.push("deleted"),
  };
}

function testTrims(open: StorageFactory): void {
  test("nothing is dropped that a trim does not cover whole", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s", bytesOf(1000));
    storage.trim(stream, 999);
    storage.trim(stream, 0);
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
    assert.deepEqual(stream.oldest, { end: 5000, newestAtMs: 100 });
    assert.deepEqual(
      [stream.endOfOlderThan(100), stream.endOfOlderThan(101), stream.endOfOlderThan(201), stream.endOfOlderThan(1000)],
      [0, 5000, 10_000, 15_000],
    );
    const starts = [5000, 5001, 15_000].map((position) => stream.segmentStartBefore(position));
    storage.trim(stream, 5000);
    await settled(storage, stream);
    for (const engine of [storage, await restart()]) {
      const kept = await loaded(engine, "s");
      assert.equal(kept.earliest, 5000);
      assert.deepEqual(kept.oldest, { end: 10_000, newestAtMs: 200 });
      assert.deepEqual(
        [5000, 5001, 15_000].map((position) => kept.segmentStartBefore(position)),
        starts,
      );
      assert.equal(kept.hasSegment(0, 5000), true);
      await assert.rejects(async () => engine.read(kept, 4999, 1), TrimmedStreamError);
      assert.deepEqual(await readAll(engine, kept), Buffer.concat([bytesOf(5000, 1), bytesOf(5000, 2)]));
    }
  });

  test("all of a stream can go, and it goes on where it was", async (t) => {
    const { storage, restart } = await open(t);
    const stream = await created(storage, "s", bytesOf(300));
    const start = stream.segmentStartBefore(300);
    storage.trim(stream, 300);
    await settled(storage, stream);
    assert.deepEqual([stream.earliest, stream.oldest, stream.state.tail, stream.segmentStartBefore(300)], [300, null, 300, start]);
    const again = await restart();
    const kept = await loaded(again, "s");
    assert.deepEqual([kept.earliest, kept.oldest, kept.state.tail, kept.segmentStartBefore(300)], [300, null, 300, start]);
    await append(again, kept, recordOf("on"));
    assert.equal((await readAll(again, kept)).toString(), "on");
    assert.equal(kept.hasSegment(start, 300 - start), true);
    assert.equal((await readAll(again, await loaded(again, "s"))).toString(), "on");
  });

  test("appends on their way are kept, whatever goes before them", async (t) => {
    const { storage, restart } = await open(t);
    const stream = await created(storage, "s", bytesOf(10));
    const under = append(storage, stream, recordOf("way"));
    storage.trim(stream, 10);
    await under;
    storage.trim(stream, stream.state.tail);
    const more = append(storage, stream, recordOf("more"));
    await more;
    const kept = await loaded(await restart(), "s");
    assert.deepEqual([kept.earliest, kept.state.tail], [13, 17]);
  });
}

function testMemory(open: StorageFactory): void {
  test("a persisted stream can be released, and is the same when it is loaded again", async (t) => {
    const { storage } = await open(t);
    const stream = await created(storage, "s", "", { ttlSeconds: 9 });
    await append(storage, stream, recordOf(bytesOf(5000), { producer: { id: "p", epoch: 0, seq: 0 }, seq: "1", atMs: 3 }), 0);
    assert.equal(storage.release(stream), false);
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
    const { storage } = await open(t);
    const stream = await created(storage, "s");
    await storage.persist(stream);
    stream.observer = observing([]);
    assert.equal(storage.release(stream), false);
    stream.observer = null;
    const appended = append(storage, stream, "x", 0);
    assert.equal(storage.release(stream), false);
    await appended;
    assert.equal(storage.release(stream), false);
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
    assert.deepEqual(
      found.find(({ name }) => name === "a"),
      { name: "a", config: configOf({ ttlSeconds: 5 }), touchedAtMs: 4242, tail: 1, oldest: { end: 1, newestAtMs: 0 } },
    );
  });

  test("an engine at work is healthy", async (t) => {
    const { storage } = await open(t);
    assert.deepEqual(storage.health(), { writable: true, reason: null, damagedStreams: 0 });
  });
}
