import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { DescriptorReserve } from "../../../../src/storage/file/disk/descriptor-reserve.js";
import { SegmentPool } from "../../../../src/storage/file/segments/segment-pool.js";
import { readFully } from "../../../../src/storage/file/disk/files.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { Barrier, diskError, WatchedFiles } from "../../../helpers/watched-files.js";

function poolOf(maxOpenFiles?: number): {
  pool: SegmentPool;
  files: WatchedFiles;
  dir: string;
  read: (name: string) => Promise<string>;
  open: () => number;
} {
  const files = new WatchedFiles();
  const dir = tempDir();
  const pool = new SegmentPool(files, maxOpenFiles);
  return {
    pool,
    files,
    dir,
    read: (name) => pool.use(join(dir, name), "read", async (file) => (await readFully(file, 0, 100)).toString()),
    open: () => files.count("open", /./) - files.count("close", /./),
  };
}

test("a file is opened once and used again", async () => {
  const { dir, files, read } = poolOf();
  writeFileSync(join(dir, "a"), "bytes");
  for (let index = 0; index < 3; index += 1) assert.equal(await read("a"), "bytes");
  assert.deepEqual(await Promise.all([read("a"), read("a")]), ["bytes", "bytes"]);
  assert.equal(files.count("open", /a$/), 1);
});

test("files stay open, the least recently used first to go, through hundreds of uses", async () => {
  const { dir, files, read } = poolOf(2);
  for (const name of ["a", "b", "c"]) writeFileSync(join(dir, name), name);
  for (let index = 0; index < 600; index += 1) assert.equal(await read(index % 2 === 0 ? "a" : "b"), index % 2 === 0 ? "a" : "b");
  assert.deepEqual([files.count("open", /a$/), files.count("open", /b$/)], [1, 1]);
  await read("c");
  assert.deepEqual([files.count("close", /a$/), files.count("close", /b$/)], [1, 0]);
});

test("a file that is open for writing serves reads", async () => {
  const { dir, pool, files, read } = poolOf();
  await pool.use(join(dir, "a"), "write", (file) => file.write(Buffer.from("new"), 0));
  assert.equal(await read("a"), "new");
  assert.equal(files.count("open", /a$/), 1);
});

test("more files than the limit are closed, the least recently used first", async () => {
  const { dir, files, read, open } = poolOf(3);
  for (const name of ["a", "b", "c", "d"]) writeFileSync(join(dir, name), name);
  for (const name of ["a", "b", "c", "a", "d"]) assert.equal(await read(name), name);
  assert.equal(open(), 3);
  assert.equal(files.count("close", /b$/), 1);
  assert.equal(await read("a"), "a");
  assert.equal(files.count("open", /a$/), 1);
  assert.equal(await read("b"), "b");
  assert.equal(files.count("open", /b$/), 2);
});

test("a process that may open few files keeps few segments open", async () => {
  const files = new WatchedFiles();
  const limits = join(tempDir(), "limits");
  writeFileSync(
    limits,
    "Limit                     Soft Limit           Hard Limit           Units\nMax open files            14                   64                   files\n",
  );
  files.open = (path, mode) => WatchedFiles.prototype.open.call(files, path === "/proc/self/limits" ? limits : path, mode);
  const pool = new SegmentPool(files);
  await pool.respectLimit(assert.ifError);
  const dir = tempDir();
  for (const name of ["a", "b", "c", "d", "e"]) await pool.use(join(dir, name), "write", async () => {});
  assert.equal(files.count("open", /[a-e]$/) - files.count("close", /[a-e]$/), 3, "a quarter");
});

test("where what must be written takes from the reserve, files that nobody uses are closed; at the end the reserve is given back", async () => {
  const { dir, pool, files } = poolOf();
  let spares = 0;
  const reserve = new DescriptorReserve({ open: () => (spares += 1), close: () => void (spares -= 1) });
  Object.assign(files, { reserve });
  await pool.respectLimit(assert.ifError);
  assert.ok(spares > 0);
  const work = new Barrier();
  await pool.use(join(dir, "unused"), "write", async () => {});
  const using = pool.use(join(dir, "used"), "write", () => work.opened);
  await files.idle();
  reserve.spend(() => undefined);
  await files.idle();
  assert.deepEqual([files.count("close", /unused$/), files.count("close", /\/used$/)], [1, 0]);
  work.open();
  await using;
  await pool.closeAll();
  assert.equal(spares, 0);
});

test("where too much is open, files that nobody uses are closed, and the open is tried again", async () => {
  const { dir, pool, files } = poolOf();
  const work = new Barrier();
  await pool.use(join(dir, "unused"), "write", async () => {});
  const using = pool.use(join(dir, "used"), "write", () => work.opened);
  await files.idle();
  files.gate = ({ kind }) => (kind === "open" && files.count("close", /unused$/) === 0 ? diskError("EMFILE") : undefined);
  await pool.use(join(dir, "next"), "write", async () => {});
  assert.equal(files.count("close", /unused$/), 1);
  files.gate = ({ kind }) => (kind === "open" ? diskError("EMFILE") : undefined);
  await assert.rejects(
    pool.use(join(dir, "another"), "write", async () => {}),
    { code: "EMFILE" },
  );
  work.open();
  await using;
});

test("files in use stay open beyond the limit, and are closed when they are not", async () => {
  const { dir, pool, open } = poolOf(1);
  const work = new Barrier();
  const uses = ["a", "b", "c"].map((name) => pool.use(join(dir, name), "write", () => work.opened));
  await pool.use(join(dir, "d"), "write", async () => {});
  assert.equal(open(), 3, "the three in use");
  work.open();
  await Promise.all(uses);
  assert.equal(open(), 1);
});

test("a file that does not open is not kept, and the next use tries again", async () => {
  const { dir, read, files, pool } = poolOf();
  await Promise.all([assert.rejects(read("a"), { code: "ENOENT" }), assert.rejects(read("a"), { code: "ENOENT" })]);
  writeFileSync(join(dir, "a"), "now");
  assert.equal(await read("a"), "now");
  await pool.closeAll();
  assert.equal(files.count("close", /a$/), 1);
});

test("work that fails leaves the file open for the next", async () => {
  const { dir, pool, files, read } = poolOf();
  writeFileSync(join(dir, "a"), "bytes");
  await assert.rejects(
    pool.use(join(dir, "a"), "read", () => Promise.reject(diskError("EIO"))),
    { code: "EIO" },
  );
  assert.equal(await read("a"), "bytes");
  assert.equal(files.count("open", /a$/), 1);
});

test("the files of a directory are closed, and opened anew by the next use", async () => {
  const { dir, pool, files, read } = poolOf();
  for (const name of ["a", "b"]) await pool.use(join(dir, "gone", name), "write", async () => {}).catch(() => {});
  await files.makeDirectory(join(dir, "gone"));
  for (const name of ["a", "b"]) await pool.use(join(dir, "gone", name), "write", (file) => file.write(Buffer.from("old"), 0));
  writeFileSync(join(dir, "stays"), "x");
  await read("stays");
  await pool.dropIn(join(dir, "gone"));
  assert.equal(files.count("close", /gone/), 2);
  assert.equal(files.count("close", /stays/), 0);
  await files.rename(join(dir, "gone"), join(dir, "trash"));
  await assert.rejects(read("gone/a"), { code: "ENOENT" });
});

test("a file of a directory that is opened while its others are closed is closed as well", async () => {
  const { dir, pool, files } = poolOf();
  await pool.use(join(dir, "a"), "write", async () => {});
  const closing = new Barrier();
  files.gate = ({ kind, path }) => (kind === "close" && path.endsWith("a") ? closing.opened : undefined);
  const dropping = pool.dropIn(dir);
  for (let index = 0; index < 300; index += 1) await pool.use(join(dir, "b"), "write", async () => {});
  closing.open();
  await dropping;
  assert.deepEqual([files.count("open", /b$/), files.count("close", /b$/)], [1, 1]);
});

test("a file that is closed while it is used is closed by its last user", async () => {
  const { dir, pool, files } = poolOf();
  const work = [new Barrier(), new Barrier()];
  const uses = work.map((barrier) => pool.use(join(dir, "a"), "write", () => barrier.opened));
  await files.idle();
  await pool.dropIn(dir);
  work[0]?.open();
  await uses[0];
  assert.equal(files.count("close", /a$/), 0);
  work[1]?.open();
  await uses[1];
  assert.equal(files.count("close", /a$/), 1);
});

test("a read does not fail with the opening for a write that it shares", async () => {
  for (const code of ["ENOSPC", "EACCES", "EROFS"]) {
    const { dir, pool, files, read } = poolOf();
    writeFileSync(join(dir, "a"), "bytes");
    files.gate = ({ kind }) => (kind === "open" && files.count("open", /a$/) === 1 ? diskError(code) : undefined);
    const write = pool.use(join(dir, "a"), "write", (file) => file.write(Buffer.from("new"), 0));
    const reads = [read("a"), read("a")];
    await assert.rejects(write, { code });
    assert.deepEqual(await Promise.all(reads), ["bytes", "bytes"]);
    assert.equal(files.count("open", /a$/), 2);
  }
});

test("all files are closed, and nothing is written to one any more, once that is said", async () => {
  const { pool, files, dir, open } = poolOf();
  const writing = new Barrier();
  const writes = pool.use(join(dir, "a"), "write", async (file) => {
    await writing.opened;
    await file.write(Buffer.from("late"), 0);
  });
  let isClosed = false;
  const closed = pool.closeAll().then(() => (isClosed = true));
  await files.idle();
  assert.equal(isClosed, false);
  writing.open();
  await Promise.all([writes, closed]);
  assert.equal(open(), 0);
});
