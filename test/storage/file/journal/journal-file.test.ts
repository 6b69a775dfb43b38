import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { JournalFile, reserveBytes } from "../../../../src/storage/file/journal/journal-file.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { Barrier, diskError, WatchedFiles } from "../../../helpers/watched-files.js";

const MIB = 1024 * 1024;

async function fileOf(limitBytes: number, allocatedBytes = 0): Promise<{ file: JournalFile; files: WatchedFiles; path: string }> {
  const files = new WatchedFiles();
  const path = join(tempDir(), "1.journal");
  const file = new JournalFile(1, path, await files.open(path, "log"), await files.open(path, "write"), allocatedBytes, limitBytes);
  return { file, files, path };
}

test("zeros are written ahead in steps, synced, up to the file's full size", async (t) => {
  const { file, files, path } = await fileOf(5 * MIB);
  t.after(() => file.close());
  const sizes: number[] = [];
  while (!file.isAllocated) {
    await file.allocate();
    sizes.push(readFileSync(path).length);
  }
  assert.deepEqual(sizes, [2 * MIB, 4 * MIB, 5 * MIB]);
  assert.equal(files.count("sync", /./), 3);
  assert.equal(file.wantsAllocation(5 * MIB), false);
});

test("a frame has room where zeros are, and anywhere once the file is complete", async (t) => {
  const { file } = await fileOf(3 * MIB);
  t.after(() => file.close());
  assert.equal(file.hasRoom(1), false);
  await file.allocate();
  const reserve = reserveBytes(3 * MIB);
  assert.equal(file.hasRoom(2 * MIB - reserve), true);
  assert.equal(file.hasRoom(2 * MIB - reserve + 1), false);
  assert.equal(file.fits(2 * MIB), true);
  assert.equal(file.fits(2 * MIB + 1), false);
  file.offset = 2 * MIB - 10;
  assert.equal(file.fits(10), true);
  assert.equal(file.fits(11), false);
  await file.allocate();
  assert.equal(file.hasRoom(20 * MIB), true);
});

test("more zeros are wanted before those that are there are used up", async (t) => {
  const { file } = await fileOf(64 * MIB);
  t.after(() => file.close());
  for (const [allocatedMib, untilMib] of [
    [2, 0.5],
    [4, 1],
    [6, 2],
    [8, 4],
  ] as const) {
    await file.allocate();
    assert.equal(file.allocatedBytes, allocatedMib * MIB);
    file.offset = untilMib * MIB;
    assert.equal(file.wantsAllocation(64 * MIB), false);
    file.offset += 1;
    assert.equal(file.wantsAllocation(64 * MIB), true);
  }
  assert.equal(file.wantsAllocation(8 * MIB), false, "it makes way for the next one");
});

test("a file that is used again is complete already", async (t) => {
  const { file } = await fileOf(64 * 1024, 64 * 1024);
  t.after(() => file.close());
  assert.equal(file.isAllocated, true);
  assert.equal(file.wantsAllocation(64 * MIB), false);
});

test("a step that fails counts for nothing", async (t) => {
  const { file, files } = await fileOf(64 * 1024);
  t.after(() => file.close());
  for (const kind of ["write", "sync"]) {
    files.gate = (operation) => (operation.kind === kind ? diskError("ENOSPC") : undefined);
    await assert.rejects(file.allocate(), { code: "ENOSPC" });
    assert.equal(file.hasRoom(1), false);
  }
  files.gate = null;
});

test("closing again does nothing more", async () => {
  const { file, files } = await fileOf(64 * 1024);
  await Promise.all([file.close(), file.close()]);
  await file.close();
  assert.equal(files.count("close", /./), 2);
});

test("a file is closed once its zeros are written", async () => {
  const { file, files } = await fileOf(2 * MIB);
  const zeros = new Barrier();
  files.gate = ({ kind }) => (kind === "write" ? zeros.opened : undefined);
  const allocated = file.allocate();
  const closed = file.close();
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(files.count("close", /./), 0);
  zeros.open();
  await allocated;
  await closed;
  assert.equal(files.count("close", /./), 2);
});
