import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { DirectoryError } from "../../../../src/storage/file/directory/lock.js";
import { SECTOR_BYTES } from "../../../../src/storage/file/format/record.js";
import { append, assertBytes, bytesOf, copyOf, crash, created, loaded, makeEngine, openEngine, openFor } from "../../../helpers/engine.js";
import { crashedWithThreeFiles, framesOf, journalFiles } from "../../../helpers/several-journal-files.js";
import { turnByte } from "../../../helpers/spoilt-files.js";
import { Barrier, JOURNAL, WatchedFiles } from "../../../helpers/watched-files.js";

describe("the end of the journal", () => {
  test("a torn last frame ends it quietly, wherever it was torn", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s");
    for (const text of ["one", "two"]) await append(engine.storage, stream, text);
    await append(engine.storage, stream, bytesOf(2000));
    const dir = await crash(engine);
    const { offsets } = framesOf(journalFiles(dir)[0] ?? "");
    const last = offsets.at(-1) ?? 0;
    for (const damage of [0, 4, 8, 12, 41, 600, 2000]) {
      const copy = copyOf(dir);
      turnByte(journalFiles(copy)[0] ?? "", last + damage);
      const again = await openEngine({ dir: copy });
      await assertBytes(again, "s", Buffer.from("onetwo"));
      assert.equal(await append(again.storage, await loaded(again.storage, "s"), "three"), "durable");
      await again.storage.close();
    }
  });

  test("a file cut off in the last frame ends it quietly", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "one");
    await append(engine.storage, stream, bytesOf(2000));
    const dir = await crash(engine);
    const path = journalFiles(dir)[0] ?? "";
    truncateSync(path, (framesOf(path).offsets.at(-1) ?? 0) + 1000);
    const again = await openFor(t, { dir });
    await assertBytes(again, "s", Buffer.from("one"));
  });

  test("starts that come to nothing leave one file between them, and what they began in is used again", async (t) => {
    const first = await openEngine();
    await created(first.storage, "s", "one,");
    let dir = await crash(first);
    for (let start = 0; start < 10; start += 1) {
      const files = new WatchedFiles();
      files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? new Barrier().opened : undefined);
      const engine = await openEngine({ dir, files });
      dir = await crash(engine);
      assert.equal(journalFiles(dir).length, 2);
    }
    for (const text of ["two,", "three,"]) {
      const engine = await openEngine({ dir });
      assert.equal(await append(engine.storage, await loaded(engine.storage, "s"), text), "durable");
      dir = await crash(engine);
    }
    const engine = await openFor(t, { dir });
    await assertBytes(engine, "s", Buffer.from("one,two,three,"));
  });

  test("damage in the middle is an error that names the file and the byte, and the file is kept", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s");
    for (const text of ["one", "two", "three"]) await append(engine.storage, stream, text);
    const dir = await crash(engine);
    const path = journalFiles(dir)[0] ?? "";
    const { offsets } = framesOf(path);
    const middle = offsets[2] ?? 0;
    turnByte(path, middle + 50);
    const before = readFileSync(path);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await assert.rejects(makeEngine({ dir }).open(), (error: unknown) => {
        assert.ok(error instanceof DirectoryError);
        assert.ok(error.message.includes(path), error.message);
        assert.match(error.message, new RegExp(`at byte ${middle}\\b`));
        return true;
      });
    }
    assert.ok(readFileSync(path).equals(before));
    assert.ok(!existsSync(join(dir, "lock")), "a refused start gives the directory back");
  });

  test("a missing batch between two files is damage", async () => {
    const { dir } = await crashedWithThreeFiles();
    const [first = "", second = ""] = journalFiles(dir);
    turnByte(first, framesOf(first).offsets.at(-1) ?? 0);
    await assert.rejects(makeEngine({ dir }).open(), (error: unknown) => error instanceof DirectoryError && error.message.includes(second));
  });

  test("a file that lost its only frame is damage, also when nothing before it tells", async () => {
    const engine = await openEngine();
    engine.files.gate = ({ kind, path }) => (kind === "rename" && JOURNAL.test(path) ? new Barrier().opened : undefined);
    const stream = await created(engine.storage, "s");
    for (let index = 0; journalFiles(engine.dir).length < 2; index += 1) await append(engine.storage, stream, bytesOf(3000, index));
    // What goes past the journal counts towards its files: after one frame with so much of it they are full.
    for (let files = 2; files < 4; files += 1) await append(engine.storage, stream, bytesOf(800_000, files));
    await append(engine.storage, stream, "!");
    const dir = await crash(engine);
    const [oldest = "", second = "", third = ""] = journalFiles(dir);
    assert.equal(framesOf(second).offsets.length, 1);
    assert.ok(framesOf(third).offsets.length > 0);
    rmSync(oldest);
    turnByte(second, 100);
    const kept = readFileSync(second);
    await assert.rejects(makeEngine({ dir }).open(), (error: unknown) => error instanceof DirectoryError && error.message.includes(second));
    assert.deepEqual(readFileSync(second), kept);
  });

  test("files that were made ready and never used are removed", async (t) => {
    const engine = await openEngine();
    await created(engine.storage, "s", "text");
    const dir = await crash(engine);
    const unused = new Layout(dir).journalFile(9);
    writeFileSync(unused, Buffer.alloc(64 * 1024));
    const again = await openFor(t, { dir });
    assert.ok(!existsSync(unused));
    await assertBytes(again, "s", Buffer.from("text"));
  });

  test("a journal from another directory is refused", async () => {
    const [one, other] = [await openEngine(), await openEngine()];
    await created(one.storage, "s");
    await created(other.storage, "s");
    const dir = await crash(one);
    const foreign = await crash(other);
    const path = journalFiles(dir)[0] ?? "";
    writeFileSync(path, readFileSync(journalFiles(foreign)[0] ?? ""));
    await assert.rejects(makeEngine({ dir }).open(), (error: unknown) => {
      return error instanceof DirectoryError && error.message.includes(path) && /another directory/.test(error.message);
    });
  });

  test("a directory whose journal is missing is refused", async () => {
    const engine = await openEngine();
    await created(engine.storage, "s");
    const dir = await crash(engine);
    for (const path of journalFiles(dir)) rmSync(path);
    await assert.rejects(
      makeEngine({ dir }).open(),
      (error: unknown) => error instanceof DirectoryError && /journal.*missing/.test(error.message),
    );
  });

  test("bytes of a client that look like a frame are not taken for one", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    const path = journalFiles(engine.dir)[0] ?? "";
    // A frame of this very file, as a client could guess it: only the directory's id is a secret.
    const forged = Buffer.from(readFileSync(path).subarray(0, 40));
    const { crc32 } = await import("node:zlib");
    forged.fill(0x41, 32, 40);
    forged.writeUInt32LE(crc32(forged.subarray(12)), 8);
    const payload = Buffer.alloc(3 * SECTOR_BYTES);
    // The payload of the next frame begins at byte 80 of its sector, or 160 with the record that binds its handle.
    for (let at = 0; at + 40 <= payload.length; at += 1) if ((80 + at) % SECTOR_BYTES === 0) forged.copy(payload, at);
    await append(engine.storage, stream, payload);
    const dir = await crash(engine);
    const copied = journalFiles(dir)[0] ?? "";
    const last = framesOf(copied).offsets.at(-1) ?? 0;
    turnByte(copied, last + 60);
    const again = await openFor(t, { dir });
    await assertBytes(again, "s", Buffer.from("kept"));
  });
});
