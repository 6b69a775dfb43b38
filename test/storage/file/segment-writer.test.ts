import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { crc32 } from "../../../src/storage/file/crc32.js";
import type { FileStream } from "../../../src/storage/file/file-stream.js";
import { segmentPath, sidecarPath } from "../../../src/storage/file/layout.js";
import { decodeSidecar, type Sidecar } from "../../../src/storage/file/sidecar.js";
import { bytesOf } from "../../helpers/engine.js";
import { fileRooms } from "../../helpers/file-rooms.js";
import { Barrier, diskError } from "../../helpers/watched-files.js";

function segmentOf(stream: FileStream, start = 0): Buffer {
  return readFileSync(segmentPath(stream.directory, start));
}

function sidecarOf(stream: FileStream): Sidecar {
  const read = decodeSidecar(readFileSync(sidecarPath(stream.directory)));
  assert.ok(read.kind === "sound");
  return read.sidecar;
}

describe("flushing", () => {
  test("writes the durable bytes to their segments, and keeps each segment's CRC", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    const parts = [1000, 3000, 2000, 500].map((size, index) => bytesOf(size, index));
    for (const part of parts) rooms.advance(stream, part);
    await rooms.writer.flush(stream);
    assert.deepEqual(segmentOf(stream, 0), Buffer.concat(parts.slice(0, 2)));
    assert.deepEqual(segmentOf(stream, 4000), Buffer.concat(parts.slice(2)));
    assert.deepEqual(stream.segments.map(({ start, crc }) => crc === crc32(segmentOf(stream, start))), [true, true]);
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
    stream.recovering = true;
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

describe("persisting", () => {
  test("puts everything durable into the stream's own files", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(3000), { seq: "7", producer: { id: "p", epoch: 1, seq: 2 }, atMs: 5 });
    rooms.advance(stream, bytesOf(2000, 1), { closes: true });
    await rooms.writer.persist(stream);
    const sidecar = sidecarOf(stream);
    assert.deepEqual(sidecar.state, stream.state);
    assert.deepEqual([sidecar.id, sidecar.name, sidecar.config, sidecar.claimed], [stream.id, stream.name, stream.config, false]);
    assert.deepEqual(sidecar.segments, [
      { start: 0, length: 3000, crc: crc32(bytesOf(3000)) },
      { start: 3000, length: 2000, crc: crc32(bytesOf(2000, 1)) },
    ]);
    assert.equal(sidecar.batch, stream.lastBatch);
    assert.equal(stream.isPersisted, true);
  });

  test("syncs bytes before the sidecar, and the sidecar before its rename", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    await rooms.writer.persist(stream);
    const order = rooms.files.operations.filter(({ kind }) => ["write", "sync", "rename", "syncDirectory"].includes(kind)).map(({ kind, path }) => `${kind} ${/\.seg$|meta\.json|s$/.exec(path)?.[0]}`);
    const steps = ["write .seg", "sync .seg", "write meta.json", "sync meta.json", "rename meta.json", "syncDirectory s"];
    let from = -1;
    for (const step of steps) {
      const at = order.indexOf(step, from + 1);
      assert.ok(at > from, `${step} in ${order.join(", ")}`);
      from = at;
    }
  });

  test("again does nothing when nothing changed", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    await rooms.writer.persist(stream);
    const before = rooms.files.operations.length;
    await rooms.writer.persist(stream);
    assert.equal(rooms.files.operations.length, before);
  });

  test("says no more than was durable when it began", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    const disk = new Barrier();
    rooms.files.gate = ({ kind }) => (kind === "write" ? disk.opened : undefined);
    const persisted = rooms.writer.persist(stream);
    await rooms.files.idle();
    rooms.advance(stream, bytesOf(20, 1), { closes: true });
    rooms.advance(stream, bytesOf(4000, 2));
    disk.open();
    await persisted;
    const sidecar = sidecarOf(stream);
    assert.deepEqual([sidecar.state.tail, sidecar.state.closed, sidecar.segments], [10, false, [{ start: 0, length: 10, crc: crc32(bytesOf(10)) }]]);
    assert.equal(stream.isPersisted, false);
    await rooms.writer.persist(stream);
    assert.equal(sidecarOf(stream).segments.length, 1 + stream.segments.length - 1);
  });

  test("of a damaged stream touches nothing", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    stream.damage = "something";
    await rooms.writer.persist(stream);
    assert.ok(!existsSync(stream.directory));
  });

  test("stops when the stream is deleted meanwhile", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    rooms.files.gate = ({ kind }) => {
      if (kind === "write") stream.deleted = true;
      return undefined;
    };
    await rooms.writer.persist(stream);
    assert.ok(!existsSync(sidecarPath(stream.directory)));
  });

  test("syncs the entries of directories again when that failed", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    await rooms.writer.persist(stream);
    rooms.files.gate = ({ kind }) => (kind === "syncDirectory" ? diskError("ENOSPC") : undefined);
    await assert.rejects(rooms.writer.syncShards(), { code: "ENOSPC" });
    rooms.files.gate = null;
    const before = rooms.files.count("syncDirectory", /./);
    await rooms.writer.syncShards();
    assert.equal(rooms.files.count("syncDirectory", /./), before + 1);
  });

  test("syncs the entries of directories once", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    await rooms.writer.persist(stream);
    const shard = rooms.layout.shard(stream.directory);
    const syncs = (): number => rooms.files.operations.filter(({ kind, path }) => kind === "syncDirectory" && path === shard).length;
    assert.equal(syncs(), 0);
    await rooms.writer.syncShards();
    await rooms.writer.syncShards();
    assert.equal(syncs(), 1);
  });
});

describe("a large payload", () => {
  test("is in its segment, synced, and the directory claimed, before its record is written", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    const { position, segmentStart } = stream.reserve(5000, 4096);
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
    const { position, segmentStart } = stream.reserve(5000, 8192);
    await rooms.writer.bypass(stream, segmentStart, position, bytesOf(5000));
    stream.fitted.clear();
    await rooms.writer.flush(stream);
    assert.deepEqual(segmentOf(stream), Buffer.concat([Buffer.from("small"), bytesOf(5000)]));
  });

  test("of a stream with a sidecar claims nothing", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    await rooms.writer.persist(stream);
    const { position, segmentStart } = stream.reserve(5000, 4096);
    await rooms.writer.bypass(stream, segmentStart, position, bytesOf(5000));
    assert.equal(sidecarOf(stream).claimed, false);
  });
});

test("a sync that failed is not tried again: everything behind it fails too, of every stream", async () => {
  const rooms = fileRooms();
  const [stream, other] = [rooms.stream("s"), rooms.stream("other")];
  for (const each of [stream, other]) rooms.advance(each, bytesOf(100));
  rooms.files.gate = ({ kind }) => (kind === "sync" ? diskError("EIO") : undefined);
  const [first, second] = [rooms.writer.persist(stream), rooms.writer.persist(stream)];
  await assert.rejects(first, { code: "EIO" });
  rooms.files.gate = null;
  await assert.rejects(second, { code: "EIO" });
  await assert.rejects(rooms.writer.persist(other), { code: "EIO" });
  assert.equal(rooms.files.count("sync", /./), 1);
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
