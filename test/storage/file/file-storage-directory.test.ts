import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { systemFiles } from "../../../src/storage/file/disk/files.js";
import { Layout } from "../../../src/storage/file/format/layout.js";
import { DirectoryError } from "../../../src/storage/file/directory/lock.js";
import { type StoredStream } from "../../../src/storage/storage.js";
import {
  append,
  assertBytes,
  bytesOf,
  copyOf,
  created,
  loaded,
  makeEngine,
  openEngine,
  openFor,
  openOnFiles,
  remove,
  SMALL,
  startCreate,
} from "../../helpers/engine.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { Barrier, diskError, JOURNAL, WatchedFiles } from "../../helpers/watched-files.js";
import { startNode } from "../../helpers/process.js";

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

  test("the directory is not given back while a stream's files are still changed", async () => {
    const { storage, files, dir } = await openEngine(SMALL);
    const disk = new Barrier();
    const directory = new Layout(dir).streamDirectory("s");
    const reached = new Promise<void>((resolve) => {
      files.gate = ({ kind, path }) => {
        if (kind !== "makeDirectory" || path !== directory) return undefined;
        resolve();
        return disk.opened;
      };
    });
    const { outcome } = startCreate(storage, "s", bytesOf(5000));
    await reached;
    let isClosed = false;
    const closed = storage.close().then(() => (isClosed = true));
    // All but that operation is over: neither a look at the clock nor at other files is under way.
    await new Promise((resolve) => setImmediate(resolve));
    await files.idle();
    assert.equal(isClosed, false);
    assert.ok(existsSync(join(dir, "lock")));
    disk.open();
    await Promise.all([closed, outcome]);
    assert.ok(!existsSync(join(dir, "lock")));
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
      isInUse: false,
      partStartBefore: () => 0,
      hasPart: () => true,
    };
    assert.throws(() => storage.read(stranger, 0, 1), TypeError);
  });
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

describe("a directory without its trash", () => {
  test("is taken, as a copy without empty directories", async (t) => {
    const { dir, storage } = await openOnFiles("s", "all of it");
    await storage.close();
    rmdirSync(join(dir, "trash"));
    const again = await openFor(t, { dir, files: new WatchedFiles(systemFiles(true)) });
    await assertBytes(again, "s", Buffer.from("all of it"));
  });

  test("loses what is deleted", async (t) => {
    const { dir, storage, files } = await openOnFiles("s", "gone");
    t.after(() => storage.close());
    rmdirSync(join(dir, "trash"));
    assert.equal(await remove(storage, await loaded(storage, "s")), "durable");
    await files.idle();
    assert.equal(await storage.load("s"), null);
  });
});
