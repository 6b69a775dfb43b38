import assert from "node:assert/strict";
import { linkSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { copyGrowing } from "../../../../src/storage/file/backup/file-copy.js";
import { Tally } from "../../../../src/storage/file/backup/tally.js";
import { UnreadableError } from "../../../../src/storage/file/backup/unreadable.js";
import { systemFiles, type OpenFile, type OpenMode, type SystemFiles } from "../../../../src/storage/file/disk/files.js";
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
  assert.deepEqual([outcome, readFileSync(to, "latin1")], ["damaged", "what was Written"]);
});

for (const [there, now, isSealed] of [
  ["abcdefgh", "abcdEFGHijkl", false],
  ["abcdefgh", "abcdEFGHijkl", true],
  ["abcdefgh", "abcdEFGH", false],
] as const)
  test(`a file that went on differently since it was copied, after a restore, is copied anew: ${now}, ${isSealed ? "sealed" : "open"}`, async () => {
    const dir = tempDir();
    const [from, to] = [join(dir, "a.seg"), join(dir, "backup.seg")];
    writeFileSync(from, now);
    writeFileSync(to, there);
    const [known, wanted] = [there, now].map((text) => ({ length: text.length, crc: crc32(Buffer.from(text)) }));
    assert.ok(known !== undefined && wanted !== undefined);
    const files: SystemFiles = { ...systemFiles(false), link: () => Promise.reject(diskError("EXDEV")) };
    assert.equal(await copyGrowing(files, { from, to, wanted, known, isSealed, isDoubted: false }, new Tally()), "changed");
    assert.equal(readFileSync(to, "latin1"), now);
    assert.deepEqual(readdirSync(dir).sort(), ["a.seg", "backup.seg"]);
  });

test("what is new of a sealed file is copied, though what was copied before can't be read again", async () => {
  const dir = tempDir();
  const [from, to] = [join(dir, "a.seg"), join(dir, "backup.seg")];
  writeFileSync(from, BYTES);
  writeFileSync(to, BYTES.subarray(0, 8));
  const files = withoutBeginning(from);
  const wanted = { length: BYTES.length, crc: crc32(BYTES) };
  const known = { length: 8, crc: crc32(BYTES.subarray(0, 8)) };
  await assert.rejects(copyGrowing(files, { from, to, wanted, known, isSealed: true, isDoubted: false }, new Tally()), UnreadableError);
  assert.deepEqual(readFileSync(to), BYTES);
  // A damaged copy stays where there is nothing better: the stream is doubted, so that the next backup looks again.
  writeFileSync(to, "What was written");
  await assert.rejects(
    copyGrowing(files, { from, to, wanted, known: null, isSealed: true, isDoubted: false }, new Tally()),
    UnreadableError,
  );
  assert.equal(readFileSync(to, "latin1"), "What was written");
  assert.deepEqual(readdirSync(dir).sort(), ["a.seg", "backup.seg"]);
});

test("what a file that ends too early does not have is not counted as copied", async () => {
  const dir = tempDir();
  const [from, to] = [join(dir, "a.seg"), join(dir, "backup.seg")];
  writeFileSync(from, "what was");
  const wanted = { length: BYTES.length, crc: crc32(BYTES) };
  const tally = new Tally();
  const copy = copyGrowing(systemFiles(false), { from, to, wanted, known: null, isSealed: false, isDoubted: false }, tally);
  assert.equal(await copy, "damaged");
  assert.deepEqual([tally.copiedBytes, tally.keptBytes], [8, 0]);
});

test("a copy that can't be made permanent is closed all the same", async () => {
  const dir = tempDir();
  const [from, to] = [join(dir, "a.seg"), join(dir, "backup.seg")];
  writeFileSync(from, BYTES);
  const wanted = { length: BYTES.length, crc: crc32(BYTES) };
  const closed: string[] = [];
  const files = filesWith((path, file) => ({
    sync: () => (path === to ? Promise.reject(diskError("EIO")) : file.sync()),
    close: () => (closed.push(path), file.close()),
  }));
  const copy = copyGrowing(files, { from, to, wanted, known: null, isSealed: false, isDoubted: false }, new Tally());
  await assert.rejects(copy, { code: "EIO" });
  assert.deepEqual(closed, [to, from]);
});

/** Files of which the first bytes of some can't be read. */
function withoutBeginning(...paths: readonly string[]): SystemFiles {
  return filesWith((path, file) => ({
    read: async (buffer, offset, length, position) => {
      if (paths.includes(path) && position < 8) throw diskError("EIO");
      return file.read(buffer, offset, length, position);
    },
  }));
}

/** Files of which `changed` does some things in another way. */
function filesWith(changed: (path: string, file: OpenFile) => Partial<OpenFile>): SystemFiles {
  const real = systemFiles(false);
  return {
    ...real,
    open: async (path: string, mode: OpenMode): Promise<OpenFile> => {
      const file = await real.open(path, mode);
      const own = changed(path, file);
      return new Proxy(file, { get: (target, name) => Reflect.get(own, name) ?? bound(target, name) });
    },
  };
}

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

test("what a copy has behind what is known stays where the file is damaged there, and is used where it is sound", async () => {
  const dir = tempDir();
  const [from, to] = [join(dir, "a.seg"), join(dir, "backup.seg")];
  const wanted = { length: BYTES.length, crc: crc32(BYTES) };
  const known = { length: 4, crc: crc32(BYTES.subarray(0, 4)) };
  const copy = (there: string): Promise<string> => {
    writeFileSync(to, there);
    return copyGrowing(systemFiles(false), { from, to, wanted, known, isSealed: false, isDoubted: false }, new Tally());
  };
  writeFileSync(from, "what was Written");
  for (const there of ["what was written", "what was written, and more"]) {
    assert.equal(await copy(there), "changed");
    assert.deepEqual(readFileSync(to), BYTES);
  }
  assert.equal(await copy("what was wri"), "changed");
  assert.deepEqual(readFileSync(to), BYTES);
  assert.equal(await copy("what Was written"), "damaged");
  assert.equal(readFileSync(to, "latin1"), "what Was written");
  writeFileSync(from, BYTES);
  assert.equal(await copy("what Was"), "changed");
  assert.deepEqual(readFileSync(to), BYTES);
});

describe("the copy of a doubted file", () => {
  const wanted = { length: BYTES.length, crc: crc32(BYTES) };
  const WRONG = "What was written";

  /** A file and a copy of it, with these bytes, and what comes of copying it again. */
  function pair(there: string | null): { from: string; to: string; copy: (isSealed: boolean, files?: SystemFiles) => Promise<string> } {
    const dir = tempDir();
    const [from, to] = [join(dir, "a.seg"), join(dir, "backup.seg")];
    writeFileSync(from, BYTES);
    if (there !== null) writeFileSync(to, there);
    const copy = (isSealed: boolean, files = systemFiles(false)): Promise<string> =>
      copyGrowing(files, { from, to, wanted, known: wanted, isSealed, isDoubted: true }, new Tally());
    return { from, to, copy };
  }

  for (const isSealed of [true, false]) {
    test(`stays where the file has become worse, sealed: ${isSealed}`, async () => {
      const { from, to, copy } = pair(WRONG);
      await assert.rejects(copy(isSealed, withoutBeginning(from)), UnreadableError);
      assert.equal(readFileSync(to, "latin1"), WRONG);
      for (const worse of ["", "What", "what was Written"]) {
        writeFileSync(from, worse);
        assert.equal(await copy(isSealed), "damaged");
        assert.equal(readFileSync(to, "latin1"), WRONG, worse);
      }
    });

    test(`is made anew where the backup's disk does not give it, sealed: ${isSealed}`, async () => {
      const { to, copy } = pair(WRONG);
      assert.equal(await copy(isSealed, withoutBeginning(to)), "changed");
      assert.deepEqual(readFileSync(to), BYTES);
    });

    test(`is no second name of a damaged file, sealed: ${isSealed}`, async () => {
      const { from, to, copy } = pair(null);
      writeFileSync(from, WRONG);
      assert.equal(await copy(isSealed), "damaged");
      assert.notEqual(statSync(from).ino, statSync(to).ino);
    });
  }

  test("is looked at also where it is a second name, and one that can't be read is the file's trouble", async () => {
    const { from, to, copy } = pair(null);
    linkSync(from, to);
    assert.equal(await copy(true), "kept");
    await assert.rejects(copy(true, withoutBeginning(from, to)), UnreadableError);
    await assert.rejects(copy(false, withoutBeginning(from, to)), { path: from });
    writeFileSync(from, WRONG);
    assert.equal(await copy(true), "damaged");
    rmSync(from);
    assert.equal(await copy(true), "missing");
  });
});
