import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Layout, segmentPath } from "../../../src/storage/file/format/layout.js";
import {
  append,
  bytesOf,
  crashAndRecover,
  created,
  forked,
  loaded,
  openEngine,
  openFor,
  readAll,
  remove,
  settled,
  SMALL,
  startCreate,
} from "../../helpers/engine.js";
import { trimBefore } from "../../helpers/trim.js";
import { Barrier, diskError, failing, JOURNAL, SEGMENT } from "../../helpers/watched-files.js";

const MIB = 1024 * 1024;

describe("a full disk", () => {
  test("appends are refused while the journal can't be written, and taken again when there is room", async (t) => {
    const { storage, files, clock, faults, log } = await openFor(t);
    const stream = await created(storage, "s", "kept,");
    files.gate = failing("ENOSPC", ["writeThen"], JOURNAL);
    const lost = await Promise.all([append(storage, stream, "lost"), append(storage, stream, "also lost"), settled(storage, stream)]);
    assert.deepEqual(lost, ["storage-full", "storage-full", "storage-full"]);
    assert.equal(await append(storage, stream, "x"), "storage-full");
    assert.equal(startCreate(storage, "other").stream, null);
    assert.deepEqual(storage.health(), { writable: false, reason: "the disk is full", damagedStreams: 0 });
    assert.deepEqual(await readAll(storage, stream), Buffer.from("kept,"));
    files.gate = null;
    clock.advance(1000);
    await files.idle();
    assert.equal(await append(storage, stream, "taken"), "durable");
    assert.deepEqual(storage.health(), { writable: true, reason: null, damagedStreams: 0 });
    assert.equal(await append(storage, stream, "."), "durable");
    assert.deepEqual(faults, []);
    assert.ok(log.some(({ level, message }) => level === "error" && message.includes("the disk is full")));
    assert.deepEqual(await readAll(storage, stream), Buffer.from("kept,taken."));
  });

  test("it is found out every second whether there is room, whoever asks meanwhile", async (t) => {
    const { storage, files, clock } = await openFor(t);
    const stream = await created(storage, "s");
    files.gate = failing("ENOSPC", ["write", "writeThen"], /./);
    await append(storage, stream, "x");
    const tries = (): number => files.count("writeThen", JOURNAL) + files.count("write", /probe$/);
    for (let second = 0; second < 3; second += 1) {
      const before = tries();
      for (let index = 0; index < 10; index += 1) assert.equal(await append(storage, stream, "x"), "storage-full");
      assert.equal(tries(), before);
      clock.advance(1000);
      await files.idle();
      assert.equal(tries(), before + 1);
      assert.equal(storage.health().writable, false);
    }
    files.gate = null;
    clock.advance(1000);
    await files.idle();
    assert.equal(storage.health().writable, true, "before anybody has appended");
    assert.equal(files.count("unlink", /probe$/), files.count("open", /probe$/));
  });

  test("what a failed write left in the journal is not recovered", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    const other = await created(engine.storage, "o");
    engine.files.gate = failing("ENOSPC", ["writeThen"], JOURNAL);
    await Promise.all([append(engine.storage, stream, bytesOf(3000)), append(engine.storage, other, "lost")]);
    engine.files.gate = null;
    engine.clock.advance(1000);
    await engine.files.idle();
    assert.equal(await append(engine.storage, stream, "!"), "durable");
    assert.equal(await append(engine.storage, other, "?"), "durable");
    const again = await crashAndRecover(engine);
    t.after(() => again.storage.close());
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.from("kept!"));
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "o")), Buffer.from("?"));
  });

  test("no room for the next journal file refuses appends until there is", async (t) => {
    const { storage, files, clock, faults } = await openFor(t);
    const stream = await created(storage, "s");
    files.gate = failing("ENOSPC", ["write"], JOURNAL);
    const taken: Buffer[] = [];
    let refused = 0;
    for (let index = 0; refused < 3 && index < 200; index += 1) {
      const part = bytesOf(1500, index);
      const outcome = await append(storage, stream, part);
      if (outcome === "durable") taken.push(part);
      else refused += 1;
    }
    assert.equal(refused, 3);
    files.gate = null;
    for (let index = 0; index < 100; index += 1) {
      clock.advance(1000);
      await files.idle();
      const part = bytesOf(1500, 1000 + index);
      if ((await append(storage, stream, part)) === "durable") taken.push(part);
    }
    assert.ok(taken.length > 100);
    assert.deepEqual(faults, []);
    assert.deepEqual(await readAll(storage, stream), Buffer.concat(taken));
  });

  for (const [what, journalBytes] of [
    ["extended", 64 * MIB],
    ["filled", 64 * 1024],
  ] as const) {
    test(`deletions and trims are taken where the journal's last file can't be ${what}: they make room`, async (t) => {
      const { storage, files, clock, faults } = await openFor(t, { ...SMALL, journalBytes });
      const stream = await created(storage, "s", bytesOf(4000, 1));
      await append(storage, stream, bytesOf(4000, 2));
      const others = await Promise.all(["a", "b", "c"].map((name) => created(storage, name)));
      const fork = await forked(storage, stream, "fork");
      files.gate = failing("ENOSPC", ["write"], /./);
      while ((await append(storage, fork, bytesOf(3900))) === "durable") await files.idle();
      assert.deepEqual(await Promise.all(others.map((other) => remove(storage, other))), ["durable", "durable", "durable"]);
      for (const { name } of others) assert.equal(await storage.load(name), null);
      assert.equal(await remove(storage, fork), "durable");
      trimBefore(storage, stream, 4000);
      assert.equal(await settled(storage, stream), "durable");
      assert.equal(stream.earliest, 4000);
      assert.equal(await append(storage, stream, "x"), "storage-full", "it is still full");
      files.gate = null;
      clock.advance(1000);
      await files.idle();
      assert.equal(await append(storage, stream, "x"), "durable");
      assert.deepEqual(faults, []);
    });
  }

  test("a large payload that finds no room is refused, and so is what came behind it", async (t) => {
    const { storage, files, dir } = await openFor(t);
    const stream = await created(storage, "s", "kept,");
    files.gate = failing("ENOSPC", ["write"], SEGMENT);
    const outcomes = await Promise.all([
      append(storage, stream, bytesOf(5000)),
      append(storage, stream, "behind"),
      append(storage, stream, bytesOf(6000)),
      settled(storage, stream),
    ]);
    assert.deepEqual(outcomes, ["storage-full", "storage-full", "storage-full", "storage-full"]);
    files.gate = null;
    assert.equal(await append(storage, stream, bytesOf(4500)), "durable");
    assert.equal(await append(storage, stream, "end"), "durable");
    const expected = Buffer.concat([Buffer.from("kept,"), bytesOf(4500), Buffer.from("end")]);
    assert.deepEqual(await readAll(storage, stream), expected);
    await storage.persist(stream);
    const directory = new Layout(dir).streamDirectory("s");
    const contents = readdirSync(directory)
      .filter((name) => SEGMENT.test(name))
      .sort()
      .map((name) => readFileSync(join(directory, name)));
    assert.deepEqual(Buffer.concat(contents), expected);
  });

  test("a large payload that fails in the middle takes nothing of the one before it along", async (t) => {
    const { storage, files, dir } = await openFor(t, { segmentBytes: 64 * 1024 });
    const stream = await created(storage, "s", "small");
    const disk = new Barrier();
    let segmentWrites = 0;
    files.gate = ({ kind, path }) => {
      if (kind === "writeThen") return disk.opened;
      if (kind === "write" && SEGMENT.test(path)) return (segmentWrites += 1) === 2 ? diskError("ENOSPC") : undefined;
      return undefined;
    };
    const first = append(storage, stream, bytesOf(5000, 1));
    const second = append(storage, stream, bytesOf(5000, 2));
    await files.idle();
    const persisted = storage.persist(stream);
    await files.idle();
    files.gate = null;
    disk.open();
    assert.deepEqual(await Promise.all([first, second]), ["durable", "storage-full"]);
    await persisted;
    await storage.persist(stream);
    assert.deepEqual(
      readFileSync(segmentPath(new Layout(dir).streamDirectory("s"), 0)),
      Buffer.concat([Buffer.from("small"), bytesOf(5000, 1)]),
    );
  });

  test("a stream whose first payload found no room can be made again", async (t) => {
    const engine = await openEngine();
    const { storage, files } = engine;
    files.gate = failing("ENOSPC", ["write", "sync"], SEGMENT);
    assert.equal(await startCreate(storage, "s", bytesOf(5000, 1)).outcome, "storage-full");
    assert.equal(await storage.load("s"), null);
    files.gate = null;
    await created(storage, "s", bytesOf(6000, 2));
    const again = await crashAndRecover(engine);
    t.after(() => again.storage.close());
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), bytesOf(6000, 2));
  });

  test("a failed deletion leaves the stream", async (t) => {
    for (const size of [10, 5000]) {
      const engine = await openEngine();
      const { storage, files, clock } = engine;
      const old = await created(storage, "s", bytesOf(size, 1));
      await storage.persist(old);
      files.gate = failing("ENOSPC", ["writeThen"], JOURNAL);
      assert.equal(await remove(storage, old), "storage-full");
      files.gate = null;
      clock.advance(1000);
      await files.idle();
      assert.equal(await storage.load("s"), old);
      assert.equal(await append(storage, old, "more"), "durable");
      await files.idle();
      const again = await crashAndRecover(engine);
      t.after(() => again.storage.close());
      const found = await loaded(again.storage, "s");
      assert.deepEqual(await readAll(again.storage, found), Buffer.concat([bytesOf(size, 1), Buffer.from("more")]));
      assert.equal(await remove(again.storage, found), "durable");
      await created(again.storage, "s", bytesOf(size, 3));
      assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), bytesOf(size, 3));
    }
  });

  test("a deletion that fails after what it waited for leaves the stream", async (t) => {
    const { storage, files, clock } = await openFor(t);
    const stream = await created(storage, "s", "kept");
    const disk = new Barrier();
    let frames = 0;
    files.gate = ({ kind, path }) => {
      if (kind === "writeThen" && JOURNAL.test(path)) return (frames += 1) === 2 ? undefined : diskError("ENOSPC");
      return kind === "write" && SEGMENT.test(path) ? disk.opened : undefined;
    };
    const outcomes = [append(storage, stream, "a"), append(storage, stream, bytesOf(5000)), remove(storage, stream)];
    assert.equal(await outcomes[0], "storage-full");
    // Another stream finds that there is room again.
    clock.advance(1000);
    await files.idle();
    await created(storage, "other");
    disk.open();
    assert.deepEqual(await Promise.all(outcomes), Array(3).fill("storage-full"));
    assert.equal(await storage.load("s"), stream);
    assert.deepEqual(await readAll(storage, stream), Buffer.from("kept"));
  });

  test("at the end keeps nobody waiting: the next start does what is left", async () => {
    for (const path of [SEGMENT, JOURNAL]) {
      const { storage, files, dir, faults } = await openEngine();
      const stream = await created(storage, "s", "kept");
      files.gate = failing("ENOSPC", ["write"], path);
      assert.equal(await append(storage, stream, "!"), "durable");
      await storage.close();
      assert.deepEqual(faults, []);
      assert.ok(!existsSync(join(dir, "lock")));
      const again = await openEngine({ dir });
      assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.from("kept!"));
      await again.storage.close();
    }
  });

  test("segments that can't be written keep their bytes in the journal and in memory", async (t) => {
    const engine = await openEngine({ tailCacheBytes: 16 * 1024 });
    const { storage, files, faults } = engine;
    const stream = await created(storage, "s");
    files.gate = failing("ENOSPC", ["write"], SEGMENT);
    const parts = Array.from({ length: 15 }, (_, index) => bytesOf(1000, index));
    for (const part of parts) assert.equal(await append(storage, stream, part), "durable");
    await files.idle();
    assert.deepEqual(await readAll(storage, stream), Buffer.concat(parts));
    assert.deepEqual(faults, []);
    files.gate = null;
    assert.equal(await append(storage, stream, "!"), "durable");
    await files.idle();
    const again = await crashAndRecover(engine);
    t.after(() => again.storage.close());
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.concat([...parts, Buffer.from("!")]));
  });
});
