import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, test } from "node:test";
import { Layout } from "../../src/storage/file/format/layout.js";
import { TOUCH_INTERVAL_MS } from "../../src/stream/rules/expiry.js";
import { Stream } from "../../src/stream/loaded/stream.js";
import { appendByName } from "../helpers/append.js";
import { bytesOf, crashAndRecover, openEngine, reopen } from "../helpers/engine.js";
import { Random } from "../helpers/random.js";
import { Barrier, diskError } from "../helpers/watched-files.js";
import { appendOf, createOf, find, gist, isThere, registryOf, registryOn, textOf } from "../helpers/registries.js";

describe("expiry", () => {
  for (const [ttlMode, readsKeep] of [
    ["sliding", true],
    ["fixed", false],
  ] as const) {
    test(`of a ${ttlMode} TTL comes within a second and never early, ${readsKeep ? "and reads move it" : "and reads do not move it"}`, async (t) => {
      const { engine, registry } = await registryOf(t, { ttlMode });
      await registry.create("s", createOf({ ttlSeconds: 10 }));
      engine.clock.advance(9000);
      await (await find(registry, "s")).touch();
      engine.clock.advance(999);
      assert.equal(await isThere(registry, "s"), true);
      engine.clock.advance(1);
      assert.equal(await isThere(registry, "s"), readsKeep);
      engine.clock.advance(8999);
      assert.equal(await isThere(registry, "s"), readsKeep);
      engine.clock.advance(1);
      assert.equal(await isThere(registry, "s"), false);
      assert.equal(gist(await appendByName(registry, "s", appendOf("x"))), "stream-not-found");
      assert.equal(gist(await registry.delete("s")), "stream-not-found");
    });
  }

  test("removes the data also if nobody asks again, and lets live readers go", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ ttlSeconds: 1, text: bytesOf(5000) }));
    const stream = await find(registry, "s");
    let ended = false;
    const leave = stream.follow(
      () => undefined,
      () => (ended = true),
    );
    const directory = new Layout(engine.dir).streamDirectory("s");
    assert.ok(existsSync(directory));
    engine.clock.advance(2000);
    await engine.files.idle();
    assert.equal(ended, true);
    assert.equal(existsSync(directory), false);
    assert.equal(registry.loadedCount, 0);
    leave();
  });

  test("removes what has left memory within two minutes, though no sweep falls into them", async (t) => {
    const { engine, registry } = await registryOf(t);
    registry.start();
    const directory = new Layout(engine.dir).streamDirectory("s");
    await registry.create("s", createOf({ ttlSeconds: 45 * 60, text: bytesOf(50) }));
    const minute = async (): Promise<void> => {
      for (const stepMs of [29_999, 30_001]) {
        engine.clock.advance(stepMs);
        await engine.files.idle();
      }
    };
    for (let minutes = 0; minutes < 44; minutes += 1) await minute();
    assert.ok(existsSync(directory));
    const { loaded, sweeps } = registry.figures();
    assert.equal(loaded, 0);
    for (let minutes = 0; minutes < 3; minutes += 1) await minute();
    assert.equal(existsSync(directory), false);
    assert.deepEqual([registry.figures().sweeps, registry.figures().expired, registry.figures().streams], [sweeps, 1, 0]);
  });

  test("at once is valid: a TTL of 0 and an expiry in the past", async (t) => {
    const { engine, registry } = await registryOf(t);
    assert.equal(gist(await registry.create("zero", createOf({ ttlSeconds: 0 }))), "created");
    assert.equal(gist(await registry.create("past", createOf({ expiresAtMs: engine.clock.nowMs() - 1000 }))), "created");
    for (const name of ["zero", "past"]) assert.equal(await isThere(registry, name), false);
    assert.equal(gist(await registry.create("zero", createOf())), "created");
  });

  test("comes before a deletion: there is nothing to delete any more", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ expiresAtMs: engine.clock.nowMs() + 100 }));
    engine.clock.advance(100);
    assert.equal(gist(await registry.delete("s")), "stream-not-found");
  });

  test("frees the name: the next creation finds nothing of it", async (t) => {
    const { engine, registry } = await registryOf(t);
    for (const size of [5, 5000]) {
      await registry.create("s", createOf({ ttlSeconds: 1, text: bytesOf(size) }));
      engine.clock.advance(1000);
      assert.equal(gist(await registry.create("s", createOf({ text: bytesOf(size + 1), contentType: "a/b" }))), "created");
      assert.equal((await textOf(registry, "s")).length, size + 1);
      await engine.files.idle();
      assert.equal(gist(await registry.delete("s")), "deleted");
    }
  });

  test("is the same across a restart: never early, and not much later", async (t) => {
    for (const restart of [reopen, crashAndRecover]) {
      const engine = await openEngine();
      const before = registryOn(engine);
      await before.registry.create("s", createOf({ ttlSeconds: 10 }));
      await before.registry.create("fixed-date", createOf({ expiresAtMs: engine.clock.nowMs() + 10_000 }));
      engine.clock.advance(5000);
      (await find(before.registry, "s")).touch();
      engine.clock.advance(400);
      // Too soon after the last one to be noted in storage.
      (await find(before.registry, "s")).touch();
      await engine.files.idle();
      const deadlineMs = engine.clock.nowMs() + 10_000;
      before.registry.stop();
      const { engine: next, registry } = await registryOf(t, {}, await restart(engine));
      next.clock.advance(deadlineMs - next.clock.nowMs() - 1);
      assert.equal(await isThere(registry, "fixed-date"), false);
      assert.equal(await isThere(registry, "s"), true);
      next.clock.advance(1001);
      assert.equal(await isThere(registry, "s"), false);
    }
  });

  test("outlives a kill that comes at any moment after a read, however often it is read", async (t) => {
    const firstSeed = Math.floor(Math.random() * 2 ** 31);
    for (let seed = firstSeed; seed < firstSeed + 20; seed += 1) {
      const random = new Random(seed);
      const ttlSeconds = random.integer(1, 5);
      const engine = await openEngine();
      const before = registryOn(engine);
      await before.registry.create("s", createOf({ ttlSeconds }));
      let readAtMs = engine.clock.nowMs();
      for (let reads = random.integer(1, 30); reads > 0; reads -= 1) {
        engine.clock.advance(random.chance(0.7) ? random.integer(0, 200) : random.integer(0, ttlSeconds * 1000 - 1));
        await (await find(before.registry, "s")).touch();
        readAtMs = engine.clock.nowMs();
      }
      const untouchedMs = random.integer(0, ttlSeconds * 1000 - 1);
      engine.clock.advance(untouchedMs);
      before.registry.stop();
      const { engine: next, registry } = await registryOf(t, {}, await crashAndRecover(engine));
      registry.start();
      // Its time goes on, looked for on disk and not, up to the last millisecond that the last read gave it.
      next.clock.advance(readAtMs + ttlSeconds * 1000 - 1 - next.clock.nowMs());
      await next.files.idle();
      assert.equal(await isThere(registry, "s"), true, `seed ${seed}: gone before its time`);
      next.clock.advance(1 + TOUCH_INTERVAL_MS);
      assert.equal(await isThere(registry, "s"), false, `seed ${seed}: there after its time`);
    }
  });

  test("costs the journal one note in half a second, however often the stream is read", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ ttlSeconds: 10 }));
    const stream = await find(registry, "s");
    const batches = (): number => engine.files.count("writeThen", /\.journal$/);
    const before = batches();
    for (let step = 0; step < 200; step += 1) {
      engine.clock.advance(10);
      for (let reader = 0; reader < 50; reader += 1) void stream.touch();
      await engine.files.idle();
    }
    assert.ok(batches() - before <= 2000 / TOUCH_INTERVAL_MS, `${batches() - before} notes of 10,000 reads in two seconds`);
  });

  test("is noted for itself beside an append that may yet fail", async (t) => {
    const { engine, registry } = registryOn(await openEngine());
    await registry.create("s", createOf({ ttlSeconds: 10 }));
    const stream = await find(registry, "s");
    engine.clock.advance(TOUCH_INTERVAL_MS);
    const disk = new Barrier();
    engine.files.gate = ({ kind, path }) =>
      kind === "write" && path.endsWith(".seg") ? disk.opened.then(() => Promise.reject(diskError("EMFILE"))) : undefined;
    const appended = appendByName(registry, "s", appendOf(bytesOf(5000).toString()));
    const noted = stream.touch();
    assert.ok(noted instanceof Promise);
    disk.open();
    assert.equal(gist(await appended), "overloaded");
    await noted;
    await engine.files.idle();
    const { storage } = await crashAndRecover(engine);
    t.after(() => storage.close());
    assert.equal((await storage.load("s"))?.state.touchedAtMs, engine.clock.nowMs());
  });

  test("is not let go from memory with a read that a full disk would not note", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ ttlSeconds: 10 }));
    await registry.create("eternal", createOf());
    const [stream, eternal] = [await find(registry, "s"), await find(registry, "eternal")];
    engine.clock.advance(2 * TOUCH_INTERVAL_MS);
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    await stream.touch();
    assert.equal(gist(await appendByName(registry, "eternal", appendOf("x"))), "storage-full");
    assert.deepEqual([stream.idle, eternal.idle], [false, true], "what does not expire has nothing to lose");
    engine.files.gate = null;
    engine.clock.advance(1000);
    await engine.files.idle();
    await stream.touch();
    assert.equal(stream.idle, true);
  });

  test("stays where it was when memory lets go of a stream whose last use was answered late", async (t) => {
    const { engine, registry } = await registryOf(t, { maxLoadedStreams: 1 });
    await registry.create("s", createOf({ ttlSeconds: 10 }));
    const before = await find(registry, "s");
    const disk = engine.files.holdJournal();
    const appended = appendByName(registry, "s", appendOf("x"));
    await engine.files.idle();
    engine.clock.advance(5000);
    engine.files.gate = null;
    disk.open();
    assert.equal(gist(await appended), "appended");
    const deadlineMs = engine.clock.nowMs() + 10_000;
    for (let others = 0; others < 8; others += 1) {
      await registry.create(`other${others}`, createOf());
      await engine.files.idle();
    }
    engine.clock.advance(deadlineMs - 1 - engine.clock.nowMs());
    const after = await registry.find("s");
    assert.ok(after instanceof Stream, "expired before its time");
    assert.notEqual(after, before, "it was let go");
  });

  test("is looked for on disk: streams that nobody loads are removed too", async (t) => {
    const engine = await openEngine();
    const before = registryOn(engine);
    for (const name of ["gone", "also-gone"]) await before.registry.create(name, createOf({ ttlSeconds: 1 }));
    await before.registry.create("stays", createOf());
    before.registry.stop();
    const again = await reopen(engine);
    again.clock.advance(5000);
    const { registry } = await registryOf(t, {}, again);
    registry.start();
    again.clock.advance(0);
    await again.files.idle();
    const layout = new Layout(engine.dir);
    assert.deepEqual(
      ["gone", "also-gone", "stays"].map((name) => existsSync(layout.streamDirectory(name))),
      [false, false, true],
    );
    const lists = (): number => again.files.operations.filter(({ kind, path }) => kind === "list" && path === layout.streams).length;
    const before60 = lists();
    again.clock.advance(60_000);
    await again.files.idle();
    assert.equal(lists(), before60 + 1, "and looked for again a minute later");
  });

  for (const [code, level] of [
    ["EMFILE", "warn"],
    ["EIO", "error"],
  ] as const)
    test(`that can't be looked for is a line in the log, and tried again: ${code}`, async (t) => {
      const { engine, registry, log } = await registryOf(t);
      engine.files.gate = ({ kind }) => (kind === "list" ? diskError(code) : undefined);
      registry.start();
      engine.clock.advance(0);
      await engine.files.idle();
      assert.deepEqual(
        log.map((line) => [line.level, line.message]),
        [[level, "the search for what has expired was cut short"]],
      );
      engine.files.gate = null;
      const lists = engine.files.count("list", /streams$/);
      engine.clock.advance(60_000);
      await engine.files.idle();
      assert.equal(engine.files.count("list", /streams$/), lists + 1);
    });

  test("that the disk has no room for is tried again", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("s", createOf({ ttlSeconds: 1 }));
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    engine.clock.advance(1500);
    await engine.files.idle();
    assert.equal(await isThere(registry, "s"), false);
    engine.files.gate = null;
    for (let second = 0; second < 3; second += 1) {
      engine.clock.advance(1000);
      await engine.files.idle();
    }
    assert.equal(registry.loadedCount, 0);
  });

  test("that the disk has no room for keeps no other from its readers, and is tried a few times a second", async (t) => {
    const { engine, registry } = await registryOf(t);
    await registry.create("first", createOf({ ttlSeconds: 1 }));
    await registry.create("later", createOf({ ttlSeconds: 3 }));
    await registry.create("eternal", createOf());
    let hasEnded = false;
    const leave = (await find(registry, "later")).follow(
      () => undefined,
      () => (hasEnded = true),
    );
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    assert.equal(gist(await appendByName(registry, "eternal", appendOf("x"))), "storage-full");
    const { storage } = engine;
    const remove = storage.delete.bind(storage);
    let tries = 0;
    storage.delete = (stored, settle) => {
      tries += 1;
      return remove(stored, settle);
    };
    // Without a turn of the event loop in between: nobody finds out that there is room again.
    engine.clock.advance(5000);
    assert.equal(hasEnded, true);
    assert.ok(tries <= 30, `${tries} tries`);
    engine.files.gate = null;
    leave();
  });
});
