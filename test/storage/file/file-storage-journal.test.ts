import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Layout } from "../../../src/storage/file/format/layout.js";
import { DamagedStreamError } from "../../../src/storage/storage.js";
import {
  append,
  bytesOf,
  crashAndRecover,
  created,
  loaded,
  makeEngine,
  openEngine,
  openFor,
  readAll,
  reopen,
  SMALL,
  remove,
  startCreate,
} from "../../helpers/engine.js";
import { trimBefore } from "../../helpers/trim.js";
import { Barrier, diskError, failing, JOURNAL, SEGMENT } from "../../helpers/watched-files.js";

describe("group commit", () => {
  test("appends that arrive together share one write, however many streams", async (t) => {
    const { storage, files } = await openFor(t);
    const streams = await Promise.all(Array.from({ length: 50 }, (_, index) => created(storage, `s${index}`)));
    const writesBefore = files.count("writeThen", JOURNAL);
    const outcomes = await Promise.all(
      Array.from({ length: 500 }, (_, index) => {
        const stream = streams[index % 50];
        assert.ok(stream !== undefined);
        return append(storage, stream, bytesOf(20, index));
      }),
    );
    assert.deepEqual(new Set(outcomes), new Set(["durable"]));
    assert.ok(
      files.count("writeThen", JOURNAL) - writesBefore <= 3,
      `${files.count("writeThen", JOURNAL) - writesBefore} writes for 500 appends`,
    );
  });

  test("what arrives during a write makes up the next two", async (t) => {
    const { storage, files } = await openFor(t);
    const stream = await created(storage, "s");
    const disk = new Barrier();
    const started = new Promise<void>((resolve) => {
      files.gate = ({ kind }) => {
        if (kind !== "writeThen") return undefined;
        resolve();
        return disk.opened;
      };
    });
    const writesBefore = files.count("writeThen", JOURNAL);
    const first = append(storage, stream, "first");
    await started;
    const rest = Array.from({ length: 100 }, () => append(storage, stream, "x"));
    disk.open();
    await Promise.all([first, ...rest]);
    assert.equal(files.count("writeThen", JOURNAL) - writesBefore, 3);
  });

  test("takes nothing of a stream behind its deletion, which a start would take for a stream that has lost its files", async (t) => {
    const { storage, files, clock } = await openFor(t, SMALL);
    const stream = await created(storage, "s", bytesOf(5000, 1));
    await append(storage, stream, bytesOf(5000, 2));
    files.gate = failing("ENOSPC", ["writeThen"], JOURNAL);
    const failed = remove(storage, stream);
    assert.equal(storage.touch(stream, 1), false);
    trimBefore(storage, stream, 5000);
    assert.equal(await failed, "storage-full");
    assert.equal(stream.earliest, 0);
    files.gate = null;
    clock.advance(1000);
    await files.idle();
    assert.equal(storage.touch(stream, 1), true, "it was not deleted");
    assert.equal(await remove(storage, stream), "durable");
    assert.equal(storage.touch(stream, 1), false);
  });

  test("a creation costs no directory, file or sync of its own before it is answered", async (t) => {
    const { storage, files } = await openFor(t);
    await files.idle();
    const before = files.operations.length;
    await Promise.all(Array.from({ length: 30 }, (_, index) => created(storage, `s${index}`, "hello")));
    assert.deepEqual(
      files.operations.slice(before).map(({ kind }) => kind),
      ["writeThen"],
    );
  });

  test("nothing is shown before it is durable", async (t) => {
    const { storage, files } = await openFor(t);
    const stream = await created(storage, "s", "old");
    const told: number[] = [];
    stream.observer = { advanced: (_, to) => told.push(to), settled: () => {}, deleted: () => {} };
    const disk = files.holdJournal();
    const appended = append(storage, stream, "new");
    await files.idle();
    assert.deepEqual({ tail: stream.state.tail, told }, { tail: 3, told: [] });
    disk.open();
    await appended;
    assert.deepEqual({ tail: stream.state.tail, told }, { tail: 6, told: [6] });
    stream.observer = null;
  });

  test("with fsync each journal write is synced by the system", async (t) => {
    const engine = makeEngine({ fsync: true });
    const { FileStorage } = await import("../../../src/storage/file/file-storage.js");
    const { systemClock } = await import("../../../src/ops/clock.js");
    const { createLog } = await import("../../../src/ops/log.js");
    const log = createLog({ level: "silent", format: "text", write: () => {} });
    const storage = await FileStorage.open({ dir: engine.dir, fsync: true, ...SMALL, clock: systemClock(), log, onFault: assert.ifError });
    t.after(() => storage.close());
    const stream = await created(storage, "s", bytesOf(5000));
    assert.equal(await append(storage, stream, "more"), "durable");
    await storage.persist(stream);
    assert.deepEqual(await readAll(storage, stream), Buffer.concat([bytesOf(5000), Buffer.from("more")]));
  });
});

describe("behind the journal", () => {
  test("journal files are rotated and used again: a few serve any number of appends", async (t) => {
    const { storage, files, dir } = await openFor(t);
    const stream = await created(storage, "s");
    let highest = 0;
    for (let index = 0; index < 300; index += 1) {
      assert.equal(await append(storage, stream, bytesOf(1500, index)), "durable");
      highest = Math.max(highest, readdirSync(join(dir, "journal")).length);
    }
    await files.idle();
    assert.ok(highest <= 6, `${highest} journal files at once`);
    assert.ok(files.count("rename", /\.spare$/) > 0, "a retired file was used again");
    assert.deepEqual(await readAll(storage, stream), Buffer.concat(Array.from({ length: 300 }, (_, index) => bytesOf(1500, index))));
  });

  test("a spare journal file that a crash left is removed", async (t) => {
    const engine = await openEngine();
    await created(engine.storage, "s", "x");
    await engine.storage.close();
    writeFileSync(join(engine.dir, "journal", "0000000000000099.journal.spare"), "old");
    await openFor(t, { dir: engine.dir });
    assert.ok(!readdirSync(join(engine.dir, "journal")).includes("0000000000000099.journal.spare"));
  });

  test("segments hold exactly the stream's bytes, and roll before they grow past their size", async (t) => {
    const { storage, dir } = await openFor(t);
    const parts = Array.from({ length: 25 }, (_, index) => bytesOf(1000, index));
    parts.splice(7, 0, bytesOf(9000, 99));
    const stream = await created(storage, "s");
    for (const part of parts) assert.equal(await append(storage, stream, part), "durable");
    await storage.persist(stream);
    const directory = new Layout(dir).streamDirectory("s");
    const segments = readdirSync(directory)
      .filter((name) => SEGMENT.test(name))
      .sort();
    const contents = segments.map((name) => readFileSync(join(directory, name)));
    assert.deepEqual(Buffer.concat(contents), Buffer.concat(parts));
    let start = 0;
    for (const [index, content] of contents.entries()) {
      assert.equal(segments[index], `${String(start).padStart(16, "0")}.seg`);
      assert.ok(content.length <= 4096 || content.length === 9000, `a segment of ${content.length} bytes`);
      start += content.length;
    }
  });

  test("the tail cache stays within its bound, and what leaves it is read from segments", async (t) => {
    const { storage, files } = await openFor(t, { tailCacheBytes: 8192 });
    const streams = await Promise.all([0, 1, 2].map((index) => created(storage, `s${index}`)));
    const parts = Array.from({ length: 60 }, (_, index) => bytesOf(700, index));
    for (const part of parts) await Promise.all(streams.map((stream) => append(storage, stream, part)));
    await files.idle();
    const readsBefore = files.count("read", SEGMENT);
    for (const stream of streams) assert.deepEqual(await readAll(storage, stream), Buffer.concat(parts));
    assert.ok(files.count("read", SEGMENT) > readsBefore, "old bytes came from segments");
  });

  test("the newest bytes are read without touching a file", async (t) => {
    const { storage, files } = await openFor(t);
    const stream = await created(storage, "s", bytesOf(3000));
    await files.idle();
    const before = files.operations.length;
    assert.ok(Buffer.isBuffer(storage.read(stream, 100, 50)));
    assert.equal(files.operations.length, before);
  });

  test("a stream that only recovery brought into memory leaves it after the checkpoint", async (t) => {
    const engine = await openEngine();
    await created(engine.storage, "s", bytesOf(100));
    const again = await crashAndRecover(engine);
    t.after(() => again.storage.close());
    await again.files.idle();
    const readsBefore = again.files.count("open", /meta\.json$/);
    await loaded(again.storage, "s");
    assert.equal(again.files.count("open", /meta\.json$/), readsBefore + 1, "it is read from its files again");
  });

  for (const end of ["close", "crash"] as const)
    test(`a damaged stream keeps what the file being written has of it, also out of memory, to a ${end}`, async (t) => {
      const engine = await openEngine();
      const { storage, files } = engine;
      const harmed = await created(storage, "harmed", "one,");
      const filler = await created(storage, "filler");
      const checkpoint = new Barrier();
      const directory = new Layout(engine.dir).streamDirectory("harmed");
      files.gate = ({ path }) =>
        path.startsWith(directory) && SEGMENT.test(path) ? checkpoint.opened.then(() => Promise.reject(diskError("EACCES"))) : undefined;
      const isSealed = (): boolean => files.operations.some(({ path }) => path.startsWith(directory) && SEGMENT.test(path));
      const fill = async (): Promise<void> => {
        for (let count = 0; count < 25; count += 1) assert.equal(await append(storage, filler, bytesOf(3000, count)), "durable");
        await files.idle();
      };
      while (!isSealed()) await fill();
      assert.equal(await append(storage, harmed, "two"), "durable");
      checkpoint.open();
      await files.idle();
      await assert.rejects(storage.load("harmed"), DamagedStreamError);
      storage.release(harmed);
      if (end === "crash") await fill();
      files.gate = null;
      const again = end === "close" ? await reopen(engine) : await crashAndRecover(engine);
      t.after(() => again.storage.close());
      assert.equal(String(await readAll(again.storage, await loaded(again.storage, "harmed"))), "one,two");
    });

  test("a good end leaves a journal without records, and the next start recovers nothing", async (t) => {
    const engine = await openEngine();
    await created(engine.storage, "s", bytesOf(100));
    const again = await reopen(engine);
    t.after(() => again.storage.close());
    assert.ok(!again.log.some(({ message }) => message === "recovered from the journal"));
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), bytesOf(100));
  });

  test("a slow disk is worth a line in the log", async (t) => {
    const { storage, files, clock, log } = await openFor(t);
    const disk = files.holdJournal();
    const { outcome } = startCreate(storage, "s");
    await files.idle();
    clock.advance(1500);
    disk.open();
    await outcome;
    assert.deepEqual(
      log.filter(({ message }) => message === "the disk is slow").map(({ fields }) => fields),
      [{ syncMs: 1500 }],
    );
  });
});
