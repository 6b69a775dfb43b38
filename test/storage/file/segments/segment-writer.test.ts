import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { crc32 } from "../../../../src/storage/file/format/crc32.js";
import { segmentPath } from "../../../../src/storage/file/format/layout.js";
import { segmentOf, sidecarOf } from "../../../helpers/stream-files.js";
import { bytesOf, rollAt } from "../../../helpers/engine.js";
import { fileRooms } from "../../../helpers/file-rooms.js";
import { Barrier, diskError } from "../../../helpers/watched-files.js";

describe("flushing", () => {
  test("writes the durable bytes to their segments, and keeps each segment's CRC", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    const parts = [1000, 3000, 2000, 500].map((size, index) => bytesOf(size, index));
    for (const part of parts) rooms.advance(stream, part);
    await rooms.writer.flush(stream);
    assert.deepEqual(segmentOf(stream, 0), Buffer.concat(parts.slice(0, 2)));
    assert.deepEqual(segmentOf(stream, 4000), Buffer.concat(parts.slice(2)));
    assert.deepEqual(
      stream.segments.map(({ start, crc }) => crc === crc32(segmentOf(stream, start))),
      [true, true],
    );
    assert.equal(stream.written, 6500);
    assert.equal(rooms.cache.unwrittenBytes, 0);
    assert.equal(rooms.files.count("sync", /./), 0, "nothing is synced");
  });

  test("stops at a limit, and goes on from there", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(100));
    await rooms.writer.flushTo(stream, 40);
    assert.deepEqual(segmentOf(stream), bytesOf(100).subarray(0, 40));
    await rooms.writer.flush(stream);
    assert.deepEqual(segmentOf(stream), bytesOf(100));
    assert.equal(stream.segments[0]?.crc, crc32(bytesOf(100)));
  });

  test("cuts off what a crash left behind the durable bytes", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    mkdirSync(stream.directory, { recursive: true });
    writeFileSync(segmentPath(stream.directory, 0), bytesOf(5000));
    rooms.advance(stream, Buffer.from("short"));
    await rooms.writer.flush(stream);
    assert.equal(segmentOf(stream).toString(), "short");
  });

  test("leaves a segment's length alone while it is not known yet how long it is", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    stream.disk.recovering = true;
    mkdirSync(stream.directory, { recursive: true });
    writeFileSync(segmentPath(stream.directory, 0), "?????bypassed");
    rooms.advance(stream, Buffer.from("short"));
    await rooms.writer.flush(stream);
    assert.equal(segmentOf(stream).toString(), "shortbypassed");
  });

  test("of a deleted stream writes nothing more", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    stream.deleted = true;
    await rooms.writer.flush(stream);
    await rooms.writer.persist(stream);
    assert.ok(!existsSync(stream.directory));
  });

  test("that failed is told, and the next one begins where it stopped", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    rooms.files.gate = ({ kind }) => (kind === "write" ? diskError("ENOSPC") : undefined);
    await assert.rejects(rooms.writer.flush(stream), { code: "ENOSPC" });
    rooms.files.gate = null;
    await rooms.writer.flush(stream);
    assert.deepEqual(segmentOf(stream), bytesOf(10));
  });
});

describe("a trim", () => {
  test("removes the segments of which nothing is kept, and their bytes from memory", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    for (const seed of [0, 1, 2]) rooms.advance(stream, bytesOf(3000, seed));
    await rooms.writer.flushTo(stream, 3000);
    stream.trim({ position: 6000, segmentStart: 3000 }, 9);
    await rooms.writer.trim(stream);
    assert.deepEqual(
      [0, 3000, 6000].map((start) => existsSync(segmentPath(stream.directory, start))),
      [false, false, false],
    );
    assert.deepEqual([stream.written, stream.cached.start, rooms.cache.unwrittenBytes], [6000, 6000, 3000]);
    await rooms.writer.persist(stream);
    assert.deepEqual(segmentOf(stream, 6000), bytesOf(3000, 2));
    const { earliest, segments } = sidecarOf(stream);
    assert.deepEqual([earliest, segments.length], [{ position: 6000, segmentStart: 3000 }, 1]);
  });

  test("waits for a flush under way, which writes nothing twice and counts nothing twice", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(3000));
    const disk = new Barrier();
    rooms.files.gate = ({ kind, path }) => (kind === "write" && path.endsWith(".seg") ? disk.opened : undefined);
    const flushed = rooms.writer.flush(stream);
    await rooms.files.idle();
    stream.trim({ position: 3000, segmentStart: 0 }, 9);
    const trimmed = rooms.writer.trim(stream);
    disk.open();
    await Promise.all([flushed, trimmed]);
    assert.deepEqual([stream.written, rooms.cache.unwrittenBytes, rooms.cache.bytes, stream.segments.length], [3000, 0, 0, 0]);
    assert.equal(existsSync(segmentPath(stream.directory, 0)), false);
  });

  test("comes before the sidecar: once the journal may forget it, no file of it is left", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    for (const seed of [0, 1]) rooms.advance(stream, bytesOf(3000, seed));
    await rooms.writer.persist(stream);
    stream.trim({ position: 3000, segmentStart: 0 }, 9);
    await rooms.writer.persist(stream);
    assert.equal(existsSync(segmentPath(stream.directory, 0)), false);
    const order = rooms.files.operations.map(({ kind }) => kind).slice(rooms.files.operations.findIndex(({ kind }) => kind === "unlink"));
    assert.deepEqual(
      order.filter((kind) => kind === "unlink" || kind === "rename" || kind === "syncDirectory"),
      ["unlink", "rename", "syncDirectory"],
    );
  });

  test("that the disk refuses is tried again with the next checkpoint", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    for (const seed of [0, 1]) rooms.advance(stream, bytesOf(3000, seed));
    await rooms.writer.persist(stream);
    stream.trim({ position: 3000, segmentStart: 0 }, 9);
    rooms.files.gate = ({ kind }) => (kind === "unlink" ? diskError("ENOMEM") : undefined);
    await assert.rejects(rooms.writer.trim(stream), { code: "ENOMEM" });
    rooms.files.gate = null;
    await rooms.writer.persist(stream);
    assert.equal(existsSync(segmentPath(stream.directory, 0)), false);
  });
});

describe("a large payload", () => {
  test("is in its segment, synced, and the directory claimed, before its record is written", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    const { position, segmentStart } = stream.reserve(5000, 0, rollAt(4096));
    await rooms.writer.bypass(stream, segmentStart, position, bytesOf(5000));
    assert.deepEqual(segmentOf(stream), bytesOf(5000));
    assert.equal(sidecarOf(stream).claimed, true);
    assert.equal(rooms.files.count("sync", /\.seg$/), 1);
    assert.ok(rooms.files.count("syncDirectory", /s$/) >= 1);
  });

  test("whose record is on its way is not cut off when the segment is fitted again", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, Buffer.from("small"));
    const { position, segmentStart } = stream.reserve(5000, 0, rollAt(8192));
    await rooms.writer.bypass(stream, segmentStart, position, bytesOf(5000));
    stream.disk.fitted.clear();
    await rooms.writer.flush(stream);
    assert.deepEqual(segmentOf(stream), Buffer.concat([Buffer.from("small"), bytesOf(5000)]));
  });

  test("of a stream with a sidecar claims nothing", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    await rooms.writer.persist(stream);
    const { position, segmentStart } = stream.reserve(5000, 0, rollAt(4096));
    await rooms.writer.bypass(stream, segmentStart, position, bytesOf(5000));
    assert.equal(sidecarOf(stream).claimed, false);
  });
});

for (const [what, failing] of [
  ["sync", /\.seg$/],
  ["write", /meta\.json\.new$/],
] as const) {
  test(`a ${what} that failed at ${failing.source} is not tried again: everything behind it fails too, of every stream`, async () => {
    const rooms = fileRooms();
    const [stream, other] = [rooms.stream("s"), rooms.stream("other")];
    for (const each of [stream, other]) rooms.advance(each, bytesOf(100));
    rooms.files.gate = ({ kind, path }) => (kind === what && failing.test(path) ? diskError("EIO") : undefined);
    const [first, second] = [rooms.writer.persist(stream), rooms.writer.persist(stream)];
    await assert.rejects(first, { code: "EIO" });
    rooms.files.gate = null;
    await assert.rejects(second, { code: "EIO" });
    await assert.rejects(rooms.writer.persist(other), { code: "EIO" });
    assert.equal(rooms.files.count(what, failing), 1);
  });
}

test("a fault beside one that passes is a fault all the same", async () => {
  const rooms = fileRooms();
  const [stream, other] = [rooms.stream("s"), rooms.stream("other")];
  for (const each of [stream, other]) rooms.advance(each, bytesOf(100));
  rooms.files.gate = ({ kind, path }) => {
    if (kind === "sync" && path.endsWith(".seg")) return diskError("EMFILE");
    return kind === "write" && path.endsWith("meta.json.new") ? diskError("EIO") : undefined;
  };
  await assert.rejects(rooms.writer.persist(stream), { code: "EIO" });
  rooms.files.gate = null;
  await assert.rejects(rooms.writer.persist(other), { code: "EIO" });
});

test("a disk that fails elsewhere ends it all: what may belong to a record in the journal is not cut off", async () => {
  const rooms = fileRooms();
  const stream = rooms.stream();
  rooms.advance(stream, bytesOf(10));
  await rooms.writer.persist(stream);
  const longer = Buffer.concat([bytesOf(10), bytesOf(5000, 1)]);
  writeFileSync(segmentPath(stream.directory, 0), longer);
  stream.unreserve();
  rooms.advance(stream, bytesOf(10, 2));
  const disk = new Barrier();
  rooms.files.gate = ({ kind }) => (kind === "size" ? disk.opened : undefined);
  const flushed = rooms.writer.flush(stream);
  await rooms.files.idle();
  rooms.state.fail(diskError("EIO"));
  disk.open();
  await assert.rejects(flushed, { code: "EIO" });
  await assert.rejects(rooms.writer.persist(stream), { code: "EIO" });
  assert.deepEqual(segmentOf(stream), longer);
});

test("the operations of one stream run one after another, also after one that failed", async () => {
  const rooms = fileRooms();
  const stream = rooms.stream();
  rooms.advance(stream, bytesOf(10));
  let failures = 0;
  rooms.files.gate = ({ kind }) => (kind === "write" && (failures += 1) === 1 ? diskError("ENOSPC") : undefined);
  const [first, second] = [rooms.writer.flush(stream), rooms.writer.persist(stream)];
  await assert.rejects(first, { code: "ENOSPC" });
  await second;
  assert.deepEqual(segmentOf(stream), bytesOf(10));
});
