import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { systemFiles } from "../../../src/storage/file/disk/files.js";
import { Layout, segmentPath } from "../../../src/storage/file/format/layout.js";
import { DirectoryError } from "../../../src/storage/file/directory/lock.js";
import { DamagedStreamError, type StoredStream } from "../../../src/storage/storage.js";
import { storageContract } from "../../contract/storage.contract.js";
import {
  append,
  bytesOf,
  copyOf,
  crash,
  crashAndRecover,
  created,
  loaded,
  makeEngine,
  openEngine,
  readAll,
  recordOf,
  remove,
  reopen,
  settled,
  SMALL,
  startCreate,
  type Engine,
  type Outcome,
} from "../../helpers/engine.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { Barrier, diskError, WatchedFiles, type Gate } from "../../helpers/watched-files.js";
import { startNode } from "../../helpers/process.js";

storageContract("FileStorage", async (t) => {
  let engine: Engine = await openEngine();
  t.after(() => engine.storage.close());
  return {
    storage: engine.storage,
    restart: async () => {
      engine = await reopen(engine);
      return engine.storage;
    },
  };
});

/** An open engine that is closed when the test is over. */
async function openFor(t: TestContext, options: Parameters<typeof openEngine>[0] = {}): Promise<Engine> {
  const engine = await openEngine(options);
  t.after(() => engine.storage.close());
  return engine;
}

/** Names whose directories are in the same shard. */
function neighbours(count: number): string[] {
  const layout = new Layout("/");
  const shard = layout.shard(layout.streamDirectory("name"));
  const names: string[] = [];
  for (let index = 0; names.length < count; index += 1)
    if (layout.shard(layout.streamDirectory(`name-${index}`)) === shard) names.push(`name-${index}`);
  return names;
}

test("a stream that only the journal has is not taken for a free name, while it waits to be opened and while it is", async (t) => {
  const [nobody = "", ...names] = neighbours(20);
  const first = await openEngine();
  for (const name of names) await created(first.storage, name, "x");
  // Listings take no time: what comes after one is done before anything else.
  const inner = { ...systemFiles(false), list: (path: string) => Promise.resolve(existsSync(path) ? readdirSync(path) : []) };
  const unopened = makeEngine({ dir: await crash(first), files: new WatchedFiles(inner) });
  // The first to list the shard is who opens the streams, behind the start.
  const listed = new Barrier();
  let listings = 0;
  unopened.files.gate = ({ kind, path }) =>
    kind === "list" && /streams.[0-9a-f]{2}$/.test(path) && (listings += 1) === 1 ? listed.opened : undefined;
  const second = await unopened.open();
  t.after(() => second.storage.close());
  assert.equal(await second.storage.load(nobody), null);
  assert.ok(listings >= 2);
  assert.deepEqual(
    names.filter((name) => second.storage.lacks(name)),
    [],
  );
  assert.equal(second.storage.lacks(nobody), true);
  listed.open();
  for (let step = 0; step < 100; step += 1) {
    assert.deepEqual(
      names.filter((name) => second.storage.lacks(name)),
      [],
      `step ${step}`,
    );
    await null;
  }
  for (const name of names) assert.equal((await loaded(second.storage, name)).state.tail, 1);
});

const JOURNAL = /\.journal$/;
const SEGMENT = /\.seg$/;

/** Fails operations of these kinds on paths that match. */
function failing(code: string, kinds: readonly string[], path: RegExp): Gate {
  return (operation) => (kinds.includes(operation.kind) && path.test(operation.path) ? diskError(code) : undefined);
}

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

describe("one process for each directory", () => {
  test("a second server is refused, and told which process and host has the directory", async (t) => {
    const { dir } = await openFor(t);
    await assert.rejects(makeEngine({ dir }).open(), (error: unknown) => {
      assert.ok(error instanceof DirectoryError);
      assert.match(error.message, new RegExp(`in use by process ${process.pid} on ${hostname()}`));
      return true;
    });
    assert.ok(existsSync(join(dir, "lock")), "the first one still has its lock");
  });

  test("the lock of a process that is gone is taken over", async (t) => {
    const gone = startNode(t, ["-e", "console.log(process.pid)"]);
    const pid = Number((await gone.ended).stdout);
    const engine = await openEngine();
    await engine.storage.close();
    writeFileSync(join(engine.dir, "lock"), JSON.stringify({ pid, host: hostname(), startedAt: null }));
    await openFor(t, { dir: engine.dir });
    assert.equal(JSON.parse(readFileSync(join(engine.dir, "lock"), "utf8")).pid, process.pid);
  });

  test("the directory is given back last, and the socket answers until then", async () => {
    const { storage, files, dir } = await openEngine();
    await created(storage, "s", "kept");
    const socket = join(dir, JSON.parse(readFileSync(join(dir, "lock"), "utf8")).socket);
    const reaches = new Set<string>();
    files.gate = async ({ kind, path }) => {
      if (kind === "unlink" && path === join(dir, "lock")) files.operations.length = 0;
      if (path !== socket) reaches.add(await systemFiles(false).reach(socket));
    };
    await storage.close();
    assert.deepEqual([...reaches], ["answers"]);
    assert.deepEqual(
      files.operations.map(({ kind, path }) => [kind, path]),
      [["unlink", socket]],
    );
    assert.deepEqual(
      readdirSync(dir).filter((name) => name.startsWith("lock")),
      [],
    );
  });

  test("the directory is free again after the end", async () => {
    const engine = await openEngine();
    await engine.storage.close();
    assert.ok(!existsSync(join(engine.dir, "lock")));
  });
});

describe("directories that can't be used", () => {
  test("a path that is a file is refused in one line", async () => {
    const path = join(tempDir(), "file");
    writeFileSync(path, "");
    for (const dir of [path, join(path, "below")]) {
      await assert.rejects(makeEngine({ dir }).open(), (error: unknown) => {
        return (
          error instanceof DirectoryError && /can't be used: it is not a directory/.test(error.message) && !error.message.includes("\n")
        );
      });
    }
  });

  test("a directory made by a newer version is refused", async () => {
    const dir = tempDir();
    writeFileSync(join(dir, "streamdir.json"), '{"format":2,"directory":"0123456789abcdef"}\n');
    await assert.rejects(makeEngine({ dir }).open(), /format 2; this version knows format 1/);
  });

  test("a start that fails for another reason tells that reason, and gives the lock back", async () => {
    const engine = makeEngine();
    engine.files.gate = ({ kind, path }) => (kind === "open" && JOURNAL.test(path) ? diskError("EIO") : undefined);
    await assert.rejects(engine.open(), /EIO/);
    assert.ok(!existsSync(join(engine.dir, "lock")));
    engine.files.gate = null;
    const again = await openEngine({ dir: engine.dir });
    await created(again.storage, "s");
    await again.storage.close();
  });

  test("a stream of another engine is refused", async (t) => {
    const { storage } = await openFor(t);
    const stream = await created(storage, "s");
    // Looks like a stream, and is none of this engine's.
    const stranger: StoredStream = {
      ...stream,
      id: "x",
      name: "s",
      config: stream.config,
      state: stream.state,
      earliest: 0,
      created: true,
      observer: null,
      segmentStartBefore: () => 0,
      hasSegment: () => true,
    };
    assert.throws(() => storage.read(stranger, 0, 1), TypeError);
  });
});

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

  test("a deletion that fails with what it waited for leaves the stream", async (t) => {
    const { storage, files, clock } = await openFor(t);
    const stream = await created(storage, "s", "kept");
    const disk = new Barrier();
    let frames = 0;
    files.gate = ({ kind, path }) => {
      if (kind === "writeThen" && JOURNAL.test(path)) return (frames += 1) === 1 ? diskError("ENOSPC") : undefined;
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

describe("a disk that fails", () => {
  async function assertFaulted(engine: Engine, stream: StoredStream): Promise<void> {
    assert.equal(engine.faults.length, 1, "told once");
    assert.deepEqual(engine.storage.health(), { writable: false, reason: "the disk failed", damagedStreams: 0 });
    assert.equal(await append(engine.storage, stream, "x"), "storage-unavailable");
    assert.equal(await startCreate(engine.storage, "new").outcome, "storage-unavailable");
    assert.equal(await remove(engine.storage, stream), "storage-unavailable");
    assert.equal(await settled(engine.storage, stream), "storage-unavailable");
    engine.storage.touch(stream, 1);
  }

  test("a failed journal write is final: everything is refused, also when the disk is well again", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    engine.files.gate = failing("EIO", ["writeThen"], JOURNAL);
    const outcomes = await Promise.all([
      append(engine.storage, stream, "a"),
      append(engine.storage, stream, "b"),
      settled(engine.storage, stream),
    ]);
    assert.deepEqual(outcomes, ["storage-unavailable", "storage-unavailable", "storage-unavailable"]);
    engine.files.gate = null;
    await assertFaulted(engine, stream);
    assert.deepEqual(await readAll(engine.storage, stream), Buffer.from("kept"));
    await engine.storage.close();
    assert.ok(!existsSync(join(engine.dir, "lock")));
    const again = await openEngine({ dir: engine.dir });
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.from("kept"));
    await again.storage.close();
  });

  test("a journal write that fails while the engine closes is final too, and the next start takes the journal", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    engine.files.gate = failing("EIO", ["writeThen"], JOURNAL);
    const late = append(engine.storage, stream, "lost");
    await engine.storage.close();
    assert.equal(await late, "storage-unavailable");
    const again = await openEngine({ dir: engine.dir });
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.from("kept"));
    await again.storage.close();
  });

  test("what comes while the engine closes fails, and nobody waits for it", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    const next = new Barrier();
    engine.files.gate = ({ kind, path }) => (kind === "write" && JOURNAL.test(path) ? next.opened : undefined);
    const closed = engine.storage.close();
    await engine.files.idle();
    const late = [append(engine.storage, stream, "late"), remove(engine.storage, stream)];
    await engine.files.idle();
    next.open();
    assert.deepEqual(await Promise.all(late), ["storage-unavailable", "storage-unavailable"]);
    await closed;
    const again = await openEngine({ dir: engine.dir });
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.from("kept"));
    await again.storage.close();
  });

  test("a clean end leaves to the journal what would take too long, and the next start takes it from there", async (t) => {
    const { storage, files, clock, dir } = await openEngine();
    const names = Array.from({ length: 100 }, (_, index) => `s${index}`);
    for (const name of names) await created(storage, name, name);
    const disk = new Barrier();
    files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? disk.opened : undefined);
    const closed = storage.close();
    await files.idle();
    clock.advance(5000);
    disk.open();
    await closed;
    const written = files.count("rename", /meta\.json/);
    assert.ok(written > 0 && written < names.length, `${written} streams are written out`);
    const again = await openFor(t, { dir });
    for (const name of names) assert.deepEqual(await readAll(again.storage, await loaded(again.storage, name)), Buffer.from(name));
  });

  test("a failed sync of a large payload is final", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s");
    engine.files.gate = failing("EIO", ["sync"], SEGMENT);
    const outcomes = await Promise.all([append(engine.storage, stream, bytesOf(5000)), append(engine.storage, stream, "behind")]);
    assert.deepEqual(outcomes, ["storage-unavailable", "storage-unavailable"]);
    await assertFaulted(engine, stream);
    await engine.storage.close();
  });

  test("a failed sync is final also for a stream that memory only lets go of", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    engine.files.gate = failing("EIO", ["sync"], SEGMENT);
    await assert.rejects(engine.storage.persist(stream), { code: "EIO" });
    engine.files.gate = null;
    await assertFaulted(engine, stream);
    await engine.storage.close();
    const again = await openEngine({ dir: engine.dir });
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.from("kept"));
    await again.storage.close();
  });

  for (const [what, kinds, path] of [
    ["sync of a segment in a checkpoint", ["sync"], SEGMENT],
    ["sidecar in a checkpoint", ["rename"], /meta\.json/],
    ["write behind the journal", ["write"], SEGMENT],
    ["next journal file", ["write"], JOURNAL],
  ] as const) {
    test(`a failed ${what} is final`, async () => {
      const engine = await openEngine();
      const stream = await created(engine.storage, "s");
      engine.files.gate = failing("EIO", kinds, path);
      for (let index = 0; index < 200 && engine.faults.length === 0; index += 1) await append(engine.storage, stream, bytesOf(1500, index));
      await engine.files.idle();
      await assertFaulted(engine, stream);
      await engine.storage.close();
    });
  }

  test("at the very end is a fault too, and the directory is given back", async () => {
    const { storage, files, dir, faults } = await openEngine();
    await created(storage, "s", "kept");
    files.gate = failing("EIO", ["write"], JOURNAL);
    await storage.close();
    assert.equal(faults.length, 1);
    assert.ok(!existsSync(join(dir, "lock")));
  });

  test("what is on its way when a background operation fails still settles as it ends", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s");
    const disk = new Barrier();
    engine.files.gate = ({ kind, path }) =>
      kind === "write" && JOURNAL.test(path) ? diskError("EIO") : kind === "writeThen" ? disk.opened : undefined;
    const outcomes: Promise<Outcome>[] = [];
    const total = 30;
    for (let index = 0; index < total; index += 1) outcomes.push(append(engine.storage, stream, bytesOf(1500, index)));
    await engine.files.idle();
    disk.open();
    const ends = await Promise.all(outcomes);
    assert.equal(ends[0], "durable");
    await assertFaulted(engine, stream);
    await engine.storage.close();
    const again = await openEngine({ dir: engine.dir });
    const found = await loaded(again.storage, "s");
    assert.ok(found.state.tail >= ends.filter((how) => how === "durable").length * 1500);
    await again.storage.close();
  });
});

describe("bounds", () => {
  test("more payload than may wait for the disk is refused, and taken again when it is there", async (t) => {
    const { storage, files } = await openFor(t, {
      journalBytes: 256 * 1024 * 1024,
      journalBypassBytes: 64 * 1024 * 1024,
      segmentBytes: 1024 ** 3,
    });
    const stream = await created(storage, "s");
    const disk = files.holdJournal();
    const megabytes = Buffer.alloc(8 * 1024 * 1024);
    const outcomes: Promise<Outcome>[] = [];
    for (let index = 0; index < 8; index += 1) outcomes.push(append(storage, stream, { ...recordOf(""), payload: megabytes }));
    assert.equal(await append(storage, stream, "x"), "overloaded");
    disk.open();
    assert.deepEqual(new Set(await Promise.all(outcomes)), new Set(["durable"]));
    await files.idle();
    assert.equal(await append(storage, stream, "x"), "durable");
  });

  test("more bytes than may wait for their segments are refused, and taken again when they are written", async (t) => {
    const { storage, files } = await openFor(t, {
      journalBytes: 64 * 1024 * 1024,
      journalBypassBytes: 8 * 1024 * 1024,
      segmentBytes: 1024 ** 3,
    });
    const stream = await created(storage, "s");
    files.gate = failing("EMFILE", ["write"], SEGMENT);
    const megabyte = Buffer.alloc(1024 * 1024);
    for (let index = 0; index < 17; index += 1)
      assert.equal(await append(storage, stream, { ...recordOf(""), payload: megabyte }), "durable");
    assert.equal(await append(storage, stream, "x"), "overloaded");
    assert.deepEqual(storage.health(), { writable: false, reason: "no more files can be opened", damagedStreams: 0 });
    files.gate = null;
    await storage.persist(stream);
    assert.equal(storage.health().writable, true);
    assert.equal(await append(storage, stream, "x"), "durable");
  });

  test("where no journal file can be opened changes are refused within two seconds, health says so, and both end by themselves", async (t) => {
    const { storage, files, clock } = await openFor(t, {});
    const stream = await created(storage, "s");
    files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".journal") ? diskError("EMFILE") : undefined);
    let waiting: Promise<Outcome>;
    for (let tail = 0; ; tail += 1000) {
      waiting = append(storage, stream, bytesOf(1000));
      await files.idle();
      if (stream.state.tail === tail) break;
    }
    clock.advance(2000);
    assert.equal(await waiting, "overloaded");
    assert.deepEqual(storage.health(), { writable: false, reason: "no more files can be opened", damagedStreams: 0 });
    assert.equal(await append(storage, stream, "x"), "overloaded");
    await files.idle();
    files.gate = null;
    clock.advance(100);
    await files.idle();
    assert.deepEqual(storage.health(), { writable: true, reason: null, damagedStreams: 0 });
    assert.equal(await append(storage, stream, "x"), "durable");
  });

  test("bytes that find no room in their segments are refused as that, and written when there is some, whether or not anybody appends", async (t) => {
    const { storage, files, clock } = await openFor(t, {
      journalBytes: 64 * 1024 * 1024,
      journalBypassBytes: 8 * 1024 * 1024,
      segmentBytes: 1024 ** 3,
    });
    const stream = await created(storage, "s");
    files.gate = failing("ENOSPC", ["write"], SEGMENT);
    const megabyte = Buffer.alloc(1024 * 1024);
    for (let index = 0; index < 17; index += 1)
      assert.equal(await append(storage, stream, { ...recordOf(""), payload: megabyte }), "durable");
    assert.equal(await append(storage, stream, "x"), "storage-full");
    assert.equal(storage.health().writable, false);
    files.gate = null;
    clock.advance(1000);
    await files.idle();
    assert.equal(storage.health().writable, true);
    assert.equal(await append(storage, stream, "x"), "durable");
  });
});

test("a stream deleted while it is read is no damage", async (t) => {
  const engine = await openEngine();
  await created(engine.storage, "s", bytesOf(3000));
  const again = await reopen(engine);
  t.after(() => again.storage.close());
  const stream = await loaded(again.storage, "s");
  await remove(again.storage, stream);
  await again.files.idle();
  await assert.rejects(
    async () => readAll(again.storage, stream),
    (error: unknown) => !(error instanceof DamagedStreamError),
  );
});

test("a directory that was copied is a directory of its own", async (t) => {
  const engine = await openFor(t);
  await created(engine.storage, "s", "same");
  await engine.files.idle();
  const copy = await openFor(t, { dir: copyOf(engine.dir) });
  const stream = await loaded(copy.storage, "s");
  await append(copy.storage, stream, " but longer");
  assert.equal((await loaded(engine.storage, "s")).state.tail, 4);
});
