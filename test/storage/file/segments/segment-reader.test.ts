import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { segmentPath } from "../../../../src/storage/file/format/layout.js";
import { crcOf, readSegment, readThrough } from "../../../../src/storage/file/segments/segment-reader.js";
import { crc32 } from "../../../../src/storage/file/format/crc32.js";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import { bytesOf, recordOf } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { Barrier, diskError } from "../../../helpers/watched-files.js";

/** A stream of two segments, as another process would find it when `isLoaded`. */
async function written(rooms: FileRooms, isLoaded = false, name = "s"): Promise<FileStream> {
  const stream = rooms.stream(name);
  rooms.advance(stream, bytesOf(3000, 1));
  rooms.advance(stream, bytesOf(2000, 2));
  await rooms.writer.persist(stream);
  await rooms.pool.closeAll();
  if (!isLoaded) return stream;
  const segments = stream.segments.map((segment) => ({ ...segment, index: "one" as const }));
  return new FileStream(stream, stream.directory, {
    id: stream.id,
    name: stream.name,
    config: stream.config,
    state: stream.state,
    earliest: stream.earliestPlace,
    forks: null,
    softDeleted: false,
    segments,
    batch: 1,
    claimed: false,
  });
}

/** A stream with one segment of more than a MiB, as another process would find it. */
async function large(rooms: FileRooms, name: string): Promise<FileStream> {
  const [start, length] = [0, 1024 * 1024 + 1];
  const bytes = Buffer.alloc(length, "x");
  const { id, config, directory, state } = rooms.stream(name);
  state.apply(recordOf(""), length);
  mkdirSync(directory, { recursive: true });
  writeFileSync(segmentPath(directory, start), bytes);
  const segments = [{ start, length, crc: crc32(bytes), firstAtMs: 0, newestAtMs: 0, index: "one" as const }];
  return new FileStream({ id, name, config }, directory, {
    id,
    name,
    config,
    state,
    earliest: { position: 0, segmentStart: 0 },
    forks: null,
    softDeleted: false,
    segments,
    batch: 1,
    claimed: false,
  });
}

async function assertDamaged(reading: Promise<unknown>, file: string, problem: RegExp): Promise<void> {
  await assert.rejects(reading, (error: unknown) => {
    assert.ok(error instanceof DamagedStreamError, String(error));
    assert.deepEqual([error.stream, error.file], ["s", file]);
    assert.match(error.message, problem);
    return true;
  });
}

describe("a segment", () => {
  test("is read at any place, and never past its end", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms);
    for (const [from, maxBytes, expected] of [
      [0, 10, bytesOf(3000, 1).subarray(0, 10)],
      [2990, 500, bytesOf(3000, 1).subarray(2990)],
      [3000, 9999, bytesOf(2000, 2)],
      [4999, 1, bytesOf(2000, 2).subarray(1999)],
    ] as const)
      assert.deepEqual(await readSegment(rooms.pool, stream, from, maxBytes), expected);
  });

  test("that is too short or missing is damage, named with stream and file", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms);
    const path = segmentPath(stream.directory, 0);
    truncateSync(path, 2500);
    assert.deepEqual(await readSegment(rooms.pool, stream, 0, 2500), bytesOf(3000, 1).subarray(0, 2500));
    await assertDamaged(readSegment(rooms.pool, stream, 2000, 1000), path, /it ends at byte 2500, before byte 3000/);
    await rooms.pool.closeAll();
    rmSync(path);
    await assertDamaged(readSegment(rooms.pool, stream, 0, 1), path, /it is missing/);
    assert.deepEqual(await readSegment(rooms.pool, stream, 3000, 9999), bytesOf(2000, 2), "the other one serves");
  });

  test("that is missing because the stream was deleted is no damage", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms);
    rmSync(segmentPath(stream.directory, 0));
    stream.deleted = true;
    await assert.rejects(readSegment(rooms.pool, stream, 0, 1), { name: "DeletedStreamError" });
  });

  test("that nobody has is a mistake of ours", async () => {
    const rooms = fileRooms();
    await assert.rejects(readSegment(rooms.pool, rooms.stream(), 0, 1), RangeError);
  });
});

describe("a segment that another process wrote", () => {
  test("is compared with its CRC before the first read, and only then", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms, true);
    const reads = await Promise.all([readSegment(rooms.pool, stream, 0, 10), readSegment(rooms.pool, stream, 10, 10)]);
    assert.deepEqual(Buffer.concat(reads), bytesOf(3000, 1).subarray(0, 20));
    assert.equal(stream.segments[0]?.unchecked, null);
    assert.notEqual(stream.segments[1]?.unchecked, null);
    const before = rooms.files.count("read", /\.seg$/);
    assert.equal(before, 3);
    await readSegment(rooms.pool, stream, 20, 10);
    assert.equal(rooms.files.count("read", /\.seg$/), before + 1);
  });

  test("with one other bit is never served", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms, true);
    const path = segmentPath(stream.directory, 0);
    const spoiled = bytesOf(3000, 1);
    spoiled[2999] = (spoiled[2999] ?? 0) ^ 1;
    writeFileSync(path, spoiled);
    for (let attempt = 0; attempt < 2; attempt += 1)
      await assertDamaged(readSegment(rooms.pool, stream, 0, 10), path, /its first 3000 bytes are not what was written/);
    assert.deepEqual(await readSegment(rooms.pool, stream, 3000, 10), bytesOf(2000, 2).subarray(0, 10));
  });

  test("is not compared for what this process appended to it", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms, true);
    rooms.advance(stream, bytesOf(100, 3));
    await rooms.writer.persist(stream);
    const path = segmentPath(stream.directory, 3000);
    const spoiled = readFileSync(path);
    spoiled[0] = (spoiled[0] ?? 0) ^ 1;
    writeFileSync(path, spoiled);
    assert.deepEqual(await readSegment(rooms.pool, stream, 5000, 100), bytesOf(100, 3));
    await assertDamaged(readSegment(rooms.pool, stream, 4999, 2), path, /its first 2000 bytes are not what was written/);
  });

  test("found damaged takes no more appends: they begin another", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms, true);
    writeFileSync(segmentPath(stream.directory, 3000), bytesOf(2000, 9));
    await assertDamaged(readSegment(rooms.pool, stream, 3000, 1), segmentPath(stream.directory, 3000), /at byte 0/);
    rooms.advance(stream, bytesOf(100, 3));
    await rooms.writer.persist(stream);
    assert.deepEqual(await readSegment(rooms.pool, stream, 5000, 100), bytesOf(100, 3));
    assert.equal(stream.partStartBefore(5100), 5000);
  });

  test("at whose path is something else is damage", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms, true);
    const path = segmentPath(stream.directory, 0);
    rmSync(path);
    mkdirSync(path);
    await assertDamaged(readSegment(rooms.pool, stream, 0, 10), path, /it can't be read \(EISDIR\)/);
  });

  test("that is large waits for its turn to be compared, and a small one does not wait behind it", async () => {
    const rooms = fileRooms();
    const streams = await Promise.all(["a", "b", "c"].map((name) => large(rooms, name)));
    const small = await written(rooms, true);
    const opened = new Barrier();
    const reading = new Set<string>();
    rooms.files.gate = ({ kind, path }) =>
      kind === "read" && !path.startsWith(small.directory) ? (reading.add(path), opened.opened) : undefined;
    const reads = streams.map((stream) => readSegment(rooms.pool, stream, 0, 10));
    assert.deepEqual(await readSegment(rooms.pool, small, 0, 10), bytesOf(3000, 1).subarray(0, 10));
    await rooms.files.idle();
    assert.equal(reading.size, 1);
    opened.open();
    for (const bytes of await Promise.all(reads)) assert.deepEqual(bytes, Buffer.alloc(10, "x"));
  });

  test("is compared again when the comparison itself failed", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms, true);
    rooms.files.gate = ({ kind }) => (kind === "read" ? diskError("EIO") : undefined);
    await assertDamaged(readSegment(rooms.pool, stream, 0, 10), segmentPath(stream.directory, 0), /it can't be read \(EIO\)/);
    rooms.files.gate = null;
    assert.deepEqual(await readSegment(rooms.pool, stream, 0, 10), bytesOf(3000, 1).subarray(0, 10));
  });
});

test("the CRC of a long file is that of all its bytes, however many steps it takes", async () => {
  const rooms = fileRooms();
  const path = `${rooms.layout.root}/long`;
  const bytes = Buffer.concat([bytesOf(1024 * 1024, 1), bytesOf(1024 * 1024, 2), bytesOf(77, 3)]);
  writeFileSync(path, bytes);
  const file = await systemFiles(false).open(path, "read");
  assert.equal(await crcOf(file, bytes.length), crc32(bytes));
  assert.equal(await crcOf(file, 5), crc32(bytes.subarray(0, 5)));
  await file.close();
});

test("the CRC of nothing is known without a read, which would end after its file is closed", async () => {
  const read = (): never => assert.fail("it is read");
  const { open } = systemFiles(false);
  const path = `${fileRooms().layout.root}/empty`;
  writeFileSync(path, "");
  const file = await open(path, "read");
  assert.equal(await crcOf(Object.assign(Object.create(file) as typeof file, { read }), 0), 0);
  await file.close();
});

describe("what a read brings", () => {
  test("is kept when it ends at the tail, and serves the next reader and later appends", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms, true);
    const bytes = await readThrough(rooms.pool, rooms.cache, stream, 3500, 4096);
    assert.deepEqual(bytes, bytesOf(2000, 2).subarray(500));
    assert.equal(stream.cached.start, 3500);
    assert.deepEqual(stream.cached.read(3600, 10), bytesOf(2000, 2).subarray(600, 610));
    rooms.advance(stream, bytesOf(100, 3));
    assert.deepEqual(stream.cached.read(5000, 4096), bytesOf(100, 3));
    await rooms.writer.persist(stream);
    assert.deepEqual(
      await readSegment(rooms.pool, stream, 4999, 2),
      Buffer.concat([bytesOf(2000, 2).subarray(1999), bytesOf(100, 3).subarray(0, 1)]),
    );
  });

  test("is not kept when it ends before the tail, or when the stream went on meanwhile", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms, true);
    await readThrough(rooms.pool, rooms.cache, stream, 3500, 10);
    assert.equal(stream.cached.start, Infinity);
    const reading = readThrough(rooms.pool, rooms.cache, stream, 3500, 4096);
    rooms.advance(stream, bytesOf(100, 3));
    await reading;
    assert.equal(stream.cached.start, 5000);
  });

  test("leaves when memory is short", async () => {
    const rooms = fileRooms();
    const stream = await written(rooms, true);
    await readThrough(rooms.pool, rooms.cache, stream, 3000, 4096);
    const other = rooms.stream("other");
    for (let round = 0; round < 40; round += 1) rooms.advance(other, bytesOf(2000, round));
    assert.equal(stream.cached.start, Infinity);
  });
});
