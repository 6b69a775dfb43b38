import assert from "node:assert/strict";
import { linkSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { copyGrowing } from "../../../../src/storage/file/backup/file-copy.js";
import { Tally } from "../../../../src/storage/file/backup/tally.js";
import { UnreadableError } from "../../../../src/storage/file/backup/unreadable.js";
import { systemFiles, type OpenFile, type OpenMode } from "../../../../src/storage/file/disk/files.js";
import { crc32 } from "../../../../src/storage/file/format/crc32.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError } from "../../../helpers/watched-files.js";

const BYTES = Buffer.from("what was written");

/** A file with a second name, as a backup on the same file system gives a sealed segment. */
function linked(): { from: string; to: string } {
  const dir = tempDir();
  const [from, to] = [join(dir, "a.seg"), join(dir, "backup.seg")];
  writeFileSync(from, BYTES);
  linkSync(from, to);
  return { from, to };
}

describe("the copy of a file that was linked before", () => {
  const extent = { length: BYTES.length, crc: crc32(BYTES) };
  for (const [title, known, isSealed, isShared] of [
    ["stays the same file while nobody writes to it", extent, true, true],
    ["becomes a file of its own when it is written to again", null, false, false],
    ["becomes one also where nothing was written yet", extent, false, false],
  ] as const)
    test(title, async () => {
      const { from, to } = linked();
      const outcome = await copyGrowing(systemFiles(false), { from, to, wanted: extent, known, isSealed, isDoubted: false }, new Tally());
      assert.ok(outcome === "kept" || outcome === "changed", outcome);
      assert.equal(statSync(from).ino === statSync(to).ino, isShared);
      assert.ok(readFileSync(to).equals(BYTES));
    });
});

test("a sound beginning of a copy is not replaced by a damaged file, by link or otherwise", async () => {
  const dir = tempDir();
  const [from, to] = [join(dir, "a.seg"), join(dir, "backup.seg")];
  writeFileSync(from, "what was Written");
  writeFileSync(to, "what was");
  const wanted = { length: BYTES.length, crc: crc32(BYTES) };
  const known = { length: 8, crc: crc32(Buffer.from("what was")) };
  for (const isSealed of [true, false]) {
    const outcome = await copyGrowing(systemFiles(false), { from, to, wanted, known, isSealed, isDoubted: false }, new Tally());
    assert.equal(outcome, "damaged");
    assert.equal(statSync(to).nlink, 1);
    assert.equal(readFileSync(to, "latin1").slice(0, 8), "what was");
  }
  writeFileSync(from, "What was written");
  const outcome = await copyGrowing(systemFiles(false), { from, to, wanted, known, isSealed: true, isDoubted: false }, new Tally());
  assert.deepEqual([outcome, readFileSync(to, "latin1")], ["damaged", "what was written"]);
});

test("what is new of a sealed file is copied, though what was copied before can't be read again", async () => {
  const dir = tempDir();
  const [from, to] = [join(dir, "a.seg"), join(dir, "backup.seg")];
  writeFileSync(from, BYTES);
  writeFileSync(to, BYTES.subarray(0, 8));
  const real = systemFiles(false);
  const files = {
    ...real,
    open: async (path: string, mode: OpenMode): Promise<OpenFile> => {
      const file = await real.open(path, mode);
      const read: OpenFile["read"] = async (buffer, offset, length, position) => {
        if (path === from && position < 8) throw diskError("EIO");
        return file.read(buffer, offset, length, position);
      };
      return new Proxy(file, { get: (target, name) => (name === "read" ? read : bound(target, name)) });
    },
  };
  const wanted = { length: BYTES.length, crc: crc32(BYTES) };
  const known = { length: 8, crc: crc32(BYTES.subarray(0, 8)) };
  await assert.rejects(copyGrowing(files, { from, to, wanted, known, isSealed: true, isDoubted: false }, new Tally()), UnreadableError);
  assert.deepEqual(readFileSync(to), BYTES);
  // A damaged copy does not stay in full length: the next backup would take it for what was copied.
  writeFileSync(to, "What was written");
  await assert.rejects(
    copyGrowing(files, { from, to, wanted, known: null, isSealed: true, isDoubted: false }, new Tally()),
    UnreadableError,
  );
  assert.ok(statSync(to).size < BYTES.length);
});

function bound(target: OpenFile, name: string | symbol): unknown {
  const own: unknown = Reflect.get(target, name);
  return typeof own === "function" ? own.bind(target) : own;
}

test("bytes of a doubted copy are looked at, and sound ones stay where the file is damaged", async () => {
  const dir = tempDir();
  const [from, to] = [join(dir, "a.seg"), join(dir, "backup.seg")];
  const wanted = { length: BYTES.length, crc: crc32(BYTES) };
  const copy = (isDoubted: boolean): Promise<string> =>
    copyGrowing(systemFiles(false), { from, to, wanted, known: wanted, isSealed: false, isDoubted }, new Tally());
  writeFileSync(from, BYTES);
  writeFileSync(to, "What was written");
  assert.deepEqual([await copy(false), readFileSync(to, "latin1")], ["kept", "What was written"]);
  assert.deepEqual([await copy(true), readFileSync(to)], ["changed", BYTES]);
  writeFileSync(from, "What was written");
  assert.deepEqual([await copy(true), readFileSync(to)], ["kept", BYTES]);
});
