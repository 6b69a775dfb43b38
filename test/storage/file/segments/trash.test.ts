import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { bytesOf } from "../../../helpers/engine.js";
import { ended, fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { SkewedClock, SKEWS } from "../../../helpers/skewed-clock.js";
import { Barrier, diskError } from "../../../helpers/watched-files.js";

async function persisted(rooms: FileRooms): Promise<FileStream> {
  const stream = rooms.stream();
  rooms.advance(stream, bytesOf(100));
  await rooms.writer.persist(stream);
  return stream;
}

describe("a deleted stream", () => {
  test("leaves its place by a rename, and its files go behind that", async () => {
    const rooms = fileRooms();
    const stream = await persisted(rooms);
    const removal = new Barrier();
    rooms.files.gate = ({ kind }) => (kind === "removeTree" ? removal.opened : undefined);
    rooms.trash.take(stream);
    assert.equal(rooms.trash.isVacating("s"), true);
    await rooms.trash.vacated("s");
    assert.ok(!existsSync(stream.directory));
    assert.deepEqual(readdirSync(rooms.layout.trash), [stream.id]);
    removal.open();
    await ended(rooms);
    assert.deepEqual(readdirSync(rooms.layout.trash), []);
    assert.equal(rooms.trash.isVacating("s"), false);
  });

  test("waits for its file operations that are under way", async () => {
    const rooms = fileRooms();
    const stream = await persisted(rooms);
    rooms.advance(stream, bytesOf(100, 1));
    const disk = new Barrier();
    rooms.files.gate = ({ kind }) => (kind === "write" ? disk.opened : undefined);
    const flushed = rooms.writer.flush(stream);
    rooms.trash.take(stream);
    await rooms.files.idle();
    assert.ok(existsSync(stream.directory));
    disk.open();
    await flushed;
    await rooms.trash.removed(stream);
    assert.ok(!existsSync(stream.directory));
  });

  test("is moved beside few others, however many are deleted together", async () => {
    const rooms = fileRooms();
    const streams: FileStream[] = [];
    for (let index = 0; index < 50; index += 1) {
      const stream = rooms.stream(`s${index}`);
      rooms.advance(stream, bytesOf(10));
      await rooms.writer.persist(stream);
      streams.push(stream);
    }
    let atOnce = 0;
    let most = 0;
    rooms.files.gate = ({ kind }) => {
      if (kind !== "rename") return undefined;
      most = Math.max(most, (atOnce += 1));
      return new Promise<void>((resolve) => setImmediate(resolve)).then(() => void (atOnce -= 1));
    };
    for (const stream of streams) rooms.trash.take(stream);
    await Promise.all(streams.map((stream) => rooms.trash.removed(stream)));
    assert.ok(most <= 2, `${most} at once`);
    await ended(rooms);
  });

  test("without a directory is gone at once, and one that was never taken is not waited for", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    await rooms.trash.removed(stream);
    await rooms.trash.vacated("s");
    rooms.trash.take(stream);
    await rooms.trash.removed(stream);
    assert.equal(rooms.files.count("rename", /./), 0);
  });

  test("that was never created is out of its place for ever before its files go", async () => {
    const rooms = fileRooms();
    const stream = await persisted(rooms);
    stream.created = false;
    const from = rooms.files.operations.length;
    rooms.trash.take(stream);
    await rooms.trash.removed(stream);
    await ended(rooms);
    const done = rooms.files.operations.slice(from).map(({ kind, path }) => `${kind} ${path}`);
    const order = [
      `rename ${stream.directory}`,
      `syncDirectory ${rooms.layout.shard(stream.directory)}`,
      `removeTree ${join(rooms.layout.trash, stream.id)}`,
    ];
    // The first removal is that of an earlier leftover in the trash.
    assert.deepEqual(done.slice(done.indexOf(order[0] ?? "")), order);
  });

  test("that can't be moved is a fault, and its name stays taken", async () => {
    const rooms = fileRooms();
    const stream = await persisted(rooms);
    rooms.files.gate = ({ kind }) => (kind === "rename" ? diskError("EIO") : undefined);
    rooms.trash.take(stream);
    await assert.rejects(rooms.trash.removed(stream), { code: "EIO" });
    assert.equal(rooms.trash.isVacating("s"), true);
    assert.equal(rooms.faults.length, 1);
    const next = rooms.stream();
    rooms.trash.take(next);
    await assert.rejects(rooms.trash.removed(next), { code: "EIO" });
    assert.equal(rooms.trash.isVacating("s"), true);
  });

  for (const { name, skewMs } of SKEWS) {
    test(`that can't be moved while too many files are open is tried again whenever the timer fires, ${name}`, async () => {
      const rooms = fileRooms(new SkewedClock(skewMs));
      const stream = await persisted(rooms);
      // As one whose creation failed: that its directory went is made permanent at once.
      stream.created = false;
      rooms.files.gate = ({ kind, path }) => (kind === "syncDirectory" && /streams/.test(path) ? diskError("EMFILE") : undefined);
      rooms.trash.take(stream);
      for (let tries = 1; tries <= 3; tries += 1) {
        await rooms.files.idle();
        assert.deepEqual([rooms.told.length, rooms.trash.isVacating("s")], [tries, true]);
        if (tries === 3) rooms.files.gate = null;
        rooms.clock.advance(Math.max(0, 100 + skewMs));
      }
      await rooms.trash.removed(stream);
      await rooms.files.idle();
      assert.deepEqual([existsSync(stream.directory), readdirSync(rooms.layout.trash), rooms.faults], [false, [], []]);
      assert.equal(rooms.log.length, 1, "said once");
      assert.equal(rooms.trash.isVacating("s"), false);
    });
  }

  test("that can't be moved for a reason that passes is left when all ends, and nobody waits for it", async () => {
    const rooms = fileRooms();
    const stream = await persisted(rooms);
    rooms.files.gate = ({ kind }) => (kind === "rename" ? diskError("EMFILE") : undefined);
    rooms.trash.take(stream);
    await rooms.files.idle();
    rooms.state.end();
    await assert.rejects(rooms.trash.removed(stream), { code: "EMFILE" });
    await ended(rooms);
    assert.deepEqual([existsSync(stream.directory), rooms.faults], [true, []]);
  });

  test("that could not be moved when all ended gets no file of a new stream of its name", async () => {
    const rooms = fileRooms();
    const stream = await persisted(rooms);
    rooms.files.gate = ({ kind }) => (kind === "rename" ? diskError("EMFILE") : undefined);
    rooms.trash.take(stream);
    const next = rooms.stream();
    next.disk.vacancy = rooms.trash.vacated("s");
    rooms.advance(next, bytesOf(100, 1));
    await rooms.files.idle();
    rooms.state.end();
    const from = rooms.files.operations.length;
    for (let tries = 0; tries < 2; tries += 1) {
      await assert.rejects(rooms.writer.flush(next), { code: "EMFILE" });
      await assert.rejects(rooms.writer.persist(next), { code: "EMFILE" });
    }
    // The last try is that of the move.
    assert.deepEqual(
      rooms.files.operations.slice(from).filter(({ kind }) => kind !== "rename"),
      [],
    );
    assert.deepEqual(rooms.faults, []);
    await ended(rooms);
  });

  test("is removed in its place where the disk has no room for the rename", async () => {
    const rooms = fileRooms();
    const stream = await persisted(rooms);
    rooms.files.gate = ({ kind }) => (kind === "rename" ? diskError("ENOSPC") : undefined);
    rooms.trash.take(stream);
    await rooms.trash.removed(stream);
    assert.ok(!existsSync(stream.directory));
    assert.deepEqual(rooms.faults, []);
  });

  test("closes its files: a new stream of the name has files of its own", async () => {
    const rooms = fileRooms();
    const old = await persisted(rooms);
    rooms.trash.take(old);
    await rooms.trash.removed(old);
    const next = await persisted(rooms);
    assert.equal(readdirSync(next.directory).length, 2);
  });
});

describe("the trash", () => {
  test("takes what belongs to no stream, also in the place of an earlier leftover", async () => {
    const rooms = fileRooms();
    const directory = join(rooms.layout.streams, "d");
    for (let time = 0; time < 2; time += 1) {
      mkdirSync(directory);
      writeFileSync(join(directory, "file"), "");
      mkdirSync(join(rooms.layout.trash, "label", "old"), { recursive: true });
      await rooms.trash.discard(directory, "label");
      assert.ok(!existsSync(directory));
      await rooms.files.idle();
      assert.deepEqual(readdirSync(rooms.layout.trash), []);
    }
    await rooms.trash.discard(directory, "label");
    await ended(rooms);
    assert.deepEqual(readdirSync(rooms.layout.trash), []);
  });

  test("costs a start one operation for a directory that never was", async () => {
    const rooms = fileRooms();
    const { files, layout } = rooms;
    mkdirSync(layout.trash, { recursive: true });
    const before = files.operations.length;
    await rooms.trash.discard(layout.streamDirectory("never"), "label", { mayBeMissing: true });
    assert.deepEqual(
      files.operations.slice(before).map(({ kind }) => kind),
      ["rename"],
    );
    await ended(rooms);
  });

  test("that somebody removed is made again: what is deleted leaves its place all the same", async () => {
    const rooms = fileRooms();
    const stream = await persisted(rooms);
    rmdirSync(rooms.layout.trash);
    rooms.trash.take(stream);
    await rooms.trash.removed(stream);
    assert.ok(!existsSync(stream.directory));
    await ended(rooms);
    assert.deepEqual([readdirSync(rooms.layout.trash), rooms.faults], [[], []]);
  });

  test("is emptied at a start of what an earlier run left", async () => {
    const rooms = fileRooms();
    for (const label of ["a", "b"]) mkdirSync(join(rooms.layout.trash, label));
    await rooms.trash.emptyAll();
    await rooms.files.idle();
    assert.deepEqual(readdirSync(rooms.layout.trash), []);
  });

  test("that can't be emptied is a line in the log, and goes at the next start", async () => {
    const rooms = fileRooms();
    mkdirSync(join(rooms.layout.trash, "a"));
    rooms.files.gate = ({ kind }) => (kind === "removeTree" ? diskError("EIO") : undefined);
    await rooms.trash.emptyAll();
    await ended(rooms);
    assert.deepEqual(
      rooms.log.map(({ level, fields }) => [level, fields["path"]]),
      [["warn", join(rooms.layout.trash, "a")]],
    );
    assert.deepEqual(rooms.faults, []);
  });

  test("begins no removal after it was stopped", async () => {
    const rooms = fileRooms();
    for (const label of ["a", "b", "c"]) mkdirSync(join(rooms.layout.trash, label));
    const removal = new Barrier();
    rooms.files.gate = ({ kind }) => (kind === "removeTree" ? removal.opened : undefined);
    await rooms.trash.emptyAll();
    await rooms.files.idle();
    const stopped = ended(rooms);
    removal.open();
    await stopped;
    assert.equal(readdirSync(rooms.layout.trash).length, 2);
  });
});
