import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  append,
  bytesOf,
  configOf,
  created,
  loaded,
  readAll,
  recordOf,
  remove,
  settled,
  startCreate,
  type Outcome,
} from "../helpers/engine.js";
import { type StorageFactory } from "./storage-under-test.js";

/** What any engine does with creations, appends and deletions. */
export function changesContract(open: StorageFactory): void {
  describe("creation", () => testCreation(open));
  describe("appends", () => testAppends(open));
  describe("deletion", () => testDeletion(open));
}

function testCreation(open: StorageFactory): void {
  test("a stream that nobody made is not there", async (t) => {
    const { storage } = await open(t);
    assert.equal(await storage.load("nobody"), null);
  });

  test("that nobody has a name can be told at once after a first look, and only then", async (t) => {
    const { storage, restart, isShared = false } = await open(t);
    assert.equal(storage.lacks("s"), false);
    assert.equal(await storage.load("s"), null);
    assert.equal(storage.lacks("s"), !isShared);
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
