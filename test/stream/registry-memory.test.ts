import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { Stream } from "../../src/stream/loaded/stream.js";
import { TOUCH_INTERVAL_MS } from "../../src/stream/rules/expiry.js";
import type { Refused } from "../../src/stream/rules/outcome.js";
import { appendByName } from "../helpers/append.js";
import { crashAndRecover, openEngine, reopen } from "../helpers/engine.js";
import { Barrier, diskError } from "../helpers/watched-files.js";
import { appendOf, createOf, find, gist, isThere, registryOf, registryOn, soFar, textOf } from "../helpers/registries.js";

describe("memory", () => {
  test("beyond its limit idle streams are let go, and are the same when they are used again", async (t) => {
    const { engine, registry } = await registryOf(t, { maxLoadedStreams: 5 });
    for (let index = 0; index < 40; index += 1) {
      const name = `s${index}`;
      await registry.create(name, createOf({ text: name }));
      await appendByName(registry, name, appendOf("!", { producer: { id: "p", epoch: 1, seq: 0 }, seq: "5" }));
      await engine.files.idle();
    }
    assert.ok(registry.loadedCount <= 10, `${registry.loadedCount} in memory`);
    for (let index = 0; index < 40; index += 1) {
      const name = `s${index}`;
      assert.equal(await textOf(registry, name), `${name}!`);
      assert.equal(gist(await appendByName(registry, name, appendOf("x", { seq: "5" }))), "stream-seq-regression");
      const duplicate = await appendByName(registry, name, appendOf("!", { producer: { id: "p", epoch: 1, seq: 0 } }));
      assert.ok(duplicate.kind === "appended" && duplicate.duplicate);
      await engine.files.idle();
    }
    assert.ok(registry.loadedCount <= 10);
  });

  describe("at twice its limit, while the disk is slow", () => {
    /** Twice as many streams as there should be; the first ones are on their way to a disk that waits for `barrier`. */
    const fill = async (t: TestContext, fault: Error | null = null) => {
      const { engine, registry } = await registryOf(t, { maxLoadedStreams: 100 });
      const barrier = new Barrier();
      const written = async (): Promise<void> => {
        await barrier.opened;
        if (fault !== null) throw fault;
      };
      engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? written() : undefined);
      const names = Array.from({ length: 200 }, (_, index) => `s${index}`);
      for (const name of names) assert.equal(gist(await registry.create(name, createOf({ text: name }))), "created");
      assert.equal(registry.loadedCount, 200);
      return { engine, registry, barrier };
    };

    test("creations wait, and each that goes on has another stream's place", async (t) => {
      const { engine, registry, barrier } = await fill(t);
      const more = Array.from({ length: 150 }, (_, index) => registry.create(`m${index}`, createOf({ text: "x" })));
      const twice = registry.create("m7", createOf({ text: "x" }));
      assert.deepEqual(new Set(await soFar(engine, [...more, twice])), new Set(["waiting"]));
      // The round for idle streams meets those that are leaving: that tells nobody that one has stayed.
      registry.start();
      engine.clock.advance(30_000);
      await engine.files.idle();
      let most = 0;
      const count = () => (most = Math.max(most, registry.loadedCount));
      for (const creation of more) void creation.then(count);
      barrier.open();
      assert.deepEqual(new Set((await Promise.all(more)).map(gist)), new Set(["created"]));
      assert.equal(gist(await twice), "there");
      assert.ok(most <= 200, `${most} in memory`);
      assert.ok(registry.figures().evicted >= 150);
      for (const name of ["s0", "m0", "m149"]) assert.equal(await textOf(registry, name), name.startsWith("s") ? name : "x");
    });

    test("streams on disk are read once another has left; one that is not there needs no place, nor one to be deleted", async (t) => {
      const { registry, barrier } = await fill(t);
      const creation = registry.create("m", createOf());
      barrier.open();
      assert.equal(gist(await creation), "created");
      const evicted = registry.figures().evicted;
      assert.ok(evicted > 0);
      assert.equal(await isThere(registry, "absent"), false);
      assert.equal(gist(await registry.delete("s0")), "deleted");
    });

    test("streams that are read while they leave stay, and others leave for those who wait", async (t) => {
      const { engine, registry, barrier } = await fill(t);
      const more = Array.from({ length: 30 }, (_, index) => registry.create(`m${index}`, createOf()));
      assert.deepEqual(new Set(await soFar(engine, more)), new Set(["waiting"]));
      for (let index = 0; index < 40; index += 1) await find(registry, `s${index}`);
      barrier.open();
      assert.deepEqual(new Set((await Promise.all(more)).map(gist)), new Set(["created"]));
    });

    test("each deletion makes room for one of those who wait", async (t) => {
      const { engine, registry, barrier } = await fill(t);
      const more = Array.from({ length: 10 }, (_, index) => registry.create(`m${index}`, createOf()));
      for (let index = 0; index < 10; index += 1) assert.equal(gist(await registry.delete(`s${190 + index}`)), "deleted");
      const gists = await soFar(engine, more);
      const loaded = registry.loadedCount;
      barrier.open();
      assert.deepEqual([new Set(gists), loaded], [new Set(["created"]), 200]);
    });

    test("those that storage keeps in memory anyway take nobody's place in the queue", async (t) => {
      // All of them are in the one journal file, and nowhere else.
      const large = { journalBytes: 16 * 1024 * 1024, segmentBytes: 1024 * 1024, journalBypassBytes: 1024 * 1024 };
      const first = await openEngine(large);
      const before = registryOn(first).registry;
      await Promise.all(Array.from({ length: 1300 }, (_, index) => before.create(`s${index}`, createOf())));
      before.stop();
      const { engine, registry } = await registryOf(t, { maxLoadedStreams: 100 }, await crashAndRecover(first, large));
      const barrier = new Barrier();
      engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? barrier.opened : undefined);
      for (let index = 0; index < 1300; index += 1) assert.ok(await isThere(registry, `s${index}`));
      const creation = registry.create("more", createOf());
      assert.deepEqual(await soFar(engine, [creation]), ["waiting"]);
      barrier.open();
      assert.equal(gist(await creation), "created");
    });

    test("streams that loaded forks need stay, without being written for nothing, and others leave", async (t) => {
      const { engine, registry } = await registryOf(t, { maxLoadedStreams: 50 });
      const fork = { offset: null, place: null, subOffset: 0 };
      for (let index = 0; index < 50; index += 1) await registry.create(`s${index}`, createOf({ text: "x" }));
      for (let index = 0; index < 50; index += 1) {
        const forked = await registry.create(`f${index}`, createOf({ contentType: null, fork: { ...fork, source: `s${index}` } }));
        assert.equal(gist(forked), "created");
      }
      await engine.files.idle();
      const needed: string[] = [];
      const persist = engine.storage.persist.bind(engine.storage);
      engine.storage.persist = (stream) => {
        if (stream.isInUse) needed.push(stream.name);
        return persist(stream);
      };
      const more = Array.from({ length: 200 }, (_, index) => registry.create(`m${index}`, createOf()));
      assert.deepEqual(new Set((await Promise.all(more)).map(gist)), new Set(["created"]));
      assert.deepEqual(needed, []);
    });

    test("and all are in use, one search tells all who come within a tenth of a second", async (t) => {
      const { engine, registry } = await registryOf(t, { maxLoadedStreams: 100 });
      for (let index = 0; index < 200; index += 1) {
        await registry.create(`s${index}`, createOf());
        (await find(registry, `s${index}`)).retain();
      }
      assert.equal(gist(await registry.create("first", createOf())), "overloaded");
      (await find(registry, "s0")).release();
      assert.equal(gist(await registry.create("soon", createOf())), "overloaded");
      engine.clock.advance(100);
      await engine.files.idle();
      assert.equal(gist(await registry.create("later", createOf())), "created");
    });

    test("1,024 requests wait, and others are refused", async (t) => {
      const { engine, registry, barrier } = await fill(t);
      const more = Array.from({ length: 1030 }, (_, index) => registry.create(`m${index}`, createOf()));
      const gists = await soFar(engine, more);
      barrier.open();
      assert.deepEqual(
        [gists.filter((each) => each === "waiting").length, gists.filter((each) => each === "overloaded").length],
        [1024, 6],
      );
      await Promise.all(more);
    });

    test("and can't be written, creations are refused, each after one try", async (t) => {
      const { engine, registry, barrier } = await fill(t, diskError("ENOSPC"));
      const more = Array.from({ length: 50 }, (_, index) => registry.create(`m${index}`, createOf()));
      assert.deepEqual(new Set(await soFar(engine, more)), new Set(["waiting"]));
      barrier.open();
      assert.deepEqual(new Set((await Promise.all(more)).map(gist)), new Set(["overloaded"]));
      assert.equal(registry.loadedCount, 200);
    });
  });

  test("streams in use stay, and when all are new names are refused", async (t) => {
    const { registry } = await registryOf(t, { maxLoadedStreams: 2 });
    const streams: Stream[] = [];
    let refused = 0;
    for (let index = 0; index < 8; index += 1) {
      const outcome = await registry.create(`s${index}`, createOf());
      if (outcome.kind === "refused") {
        assert.equal(outcome.code, "overloaded");
        refused += 1;
        continue;
      }
      const stream = await find(registry, `s${index}`);
      stream.retain();
      streams.push(stream);
    }
    assert.ok(refused > 0 && streams.length >= 2, `${refused} refused`);
    for (const stream of streams) assert.equal(await registry.find(stream.name), stream);
    for (const stream of streams) stream.release();
  });

  for (const [what, isWritten, most] of [
    ["whose use a full disk does not note", false, 4],
    ["beside one that the disk has no room for", true, 5],
  ] as const) {
    test(`streams ${what} stay, and at twice the limit others are refused until they leave`, async (t) => {
      const first = await openEngine();
      const before = registryOn(first).registry;
      const names = Array.from({ length: 10 }, (_, index) => `s${index}`);
      for (const name of names) await before.create(name, createOf({ ttlSeconds: 1000, text: name }));
      await before.create("other", createOf());
      before.stop();
      const { engine, registry } = await registryOf(t, { maxLoadedStreams: 2 }, await reopen(first));
      engine.clock.advance(2 * TOUCH_INTERVAL_MS);
      if (isWritten) assert.equal(gist(await appendByName(registry, "other", appendOf("x"))), "appended");
      engine.files.gate = ({ kind, path }) =>
        kind === "writeThen" || (kind === "rename" && path.includes("meta.json")) ? diskError("ENOSPC") : undefined;
      assert.equal(gist(await appendByName(registry, "other", appendOf("x"))), "storage-full");
      const refusals: Refused[] = [];
      for (const name of names) {
        const found = await registry.find(name);
        if (found instanceof Stream) await found.touch();
        else refusals.push(found);
        await engine.files.idle();
      }
      assert.ok(registry.loadedCount <= most, `${registry.loadedCount} in memory`);
      assert.ok(refusals.length > 0);
      for (const { code, detail } of refusals) assert.deepEqual([code, detail], ["overloaded", "Too many streams are in use."]);
      engine.files.gate = null;
      engine.clock.advance(1000);
      await engine.files.idle();
      // It is still too many, but now they leave, and who asks waits for one; at first those stay whose use is noted by that.
      assert.equal(await isThere(registry, "s9"), isWritten);
      engine.clock.advance(100);
      await engine.files.idle();
      for (const name of names) {
        assert.equal(await textOf(registry, name), name);
        await engine.files.idle();
      }
    });
  }

  test("a stream that has no room there can be deleted, also while somebody looks for it", async (t) => {
    const first = await openEngine();
    const before = registryOn(first).registry;
    for (const name of ["a", "b", "left"]) await before.create(name, createOf());
    before.stop();
    const { registry } = await registryOf(t, { maxLoadedStreams: 1 }, await reopen(first));
    const inUse = [await find(registry, "a"), await find(registry, "b")];
    for (const stream of inUse) stream.retain();
    const [found, deleted] = await Promise.all([registry.find("left"), registry.delete("left")]);
    assert.ok(!(found instanceof Stream));
    assert.deepEqual([found.code, gist(deleted)], ["overloaded", "deleted"]);
    for (const stream of inUse) stream.release();
  });

  test("a stream that nobody used for two rounds is let go, and its expiry still comes", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ text: "x" }));
    const first = await find(registry, "s");
    registry.start();
    engine.clock.advance(30_000);
    await engine.files.idle();
    assert.equal(registry.loadedCount, 1);
    engine.clock.advance(30_000);
    await engine.files.idle();
    assert.equal(registry.loadedCount, 0);
    const again = await find(registry, "s");
    assert.notEqual(again, first);
    assert.equal(again.id, first.id);
    assert.equal(await textOf(registry, "s"), "x");
  });

  test("a stream that is used while it is written out stays", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ text: "x" }));
    registry.start();
    engine.clock.advance(30_000);
    await engine.files.idle();
    const disk = new Barrier();
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? disk.opened : undefined);
    engine.clock.advance(30_000);
    await engine.files.idle();
    const used = await find(registry, "s");
    disk.open();
    await engine.files.idle();
    assert.equal(registry.loadedCount, 1);
    assert.equal(await find(registry, "s"), used);
  });

  test("a stream that can't be written out stays, and the log says so", async (t) => {
    const { engine, registry, log } = await registryOf(t);
    await registry.create("s", createOf({ text: "x" }));
    registry.start();
    engine.clock.advance(30_000);
    await engine.files.idle();
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? diskError("ENOSPC") : undefined);
    engine.clock.advance(30_000);
    await engine.files.idle();
    assert.equal(registry.loadedCount, 1);
    assert.deepEqual(
      log.map(({ message, fields }) => [message, fields["stream"]]),
      [["a stream could not be written to its files", "s"]],
    );
    engine.files.gate = null;
  });

  test("after the end nothing happens in the background", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ ttlSeconds: 1 }));
    registry.start();
    registry.stop();
    const before = engine.files.operations.length;
    engine.clock.advance(100_000);
    await engine.files.idle();
    assert.equal(engine.files.operations.length, before);
  });
});
