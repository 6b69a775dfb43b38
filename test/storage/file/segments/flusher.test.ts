import assert from "node:assert/strict";
import { test } from "node:test";
import { Flusher } from "../../../../src/storage/file/segments/flusher.js";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { bytesOf } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { SkewedClock, SKEWS } from "../../../helpers/skewed-clock.js";
import { diskError } from "../../../helpers/watched-files.js";

interface WatchedFlusher {
  readonly flusher: Flusher;
  readonly faults: readonly Error[];
  /** Makes `length` bytes durable in a stream and hands it to the flusher. */
  add(stream: FileStream, length: number): Promise<void>;
}

function flusherOf(rooms: FileRooms): WatchedFlusher {
  const { parts, files, faults } = rooms;
  const flusher = new Flusher(parts, 1000);
  const add = async (stream: FileStream, length: number): Promise<void> => {
    rooms.advance(stream, bytesOf(length));
    flusher.add(stream);
    await files.idle();
  };
  return { flusher, faults, add };
}

test("beyond its bound the streams that have waited longest are written, until half of it waits", async () => {
  const rooms = fileRooms();
  const { flusher, add } = flusherOf(rooms);
  const streams = ["a", "b", "c", "gone"].map((name) => rooms.stream(name));
  const [a, b, c, gone] = streams as [FileStream, FileStream, FileStream, FileStream]; // as many as names
  flusher.add(gone);
  flusher.drop(gone);
  await add(a, 400);
  await add(b, 400);
  assert.deepEqual(
    streams.map(({ written }) => written),
    [0, 0, 0, 0],
  );
  await add(c, 400);
  assert.deepEqual(
    streams.map(({ written }) => written),
    [400, 400, 0, 0],
  );
});

for (const [code, waitMs, lacksRoom] of [
  ["ENOSPC", 1000, true],
  ["EMFILE", 100, false],
] as const) {
  test(`after ${code} it is tried again in ${waitMs} ms, whether or not anything is appended`, async () => {
    const rooms = fileRooms();
    const { flusher, faults, add } = flusherOf(rooms);
    const stream = rooms.stream();
    rooms.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".seg") ? diskError(code) : undefined);
    await add(stream, 2000);
    const tries = rooms.files.count("open", /\.seg$/);
    await add(stream, 10);
    assert.equal(rooms.files.count("open", /\.seg$/), tries, "not with every append");
    assert.equal(flusher.lacksRoom, lacksRoom);
    rooms.files.gate = null;
    rooms.clock.advance(waitMs);
    await rooms.files.idle();
    assert.equal(stream.written, 2010);
    assert.equal(flusher.lacksRoom, false);
    assert.deepEqual(faults, []);
  });
}

for (const { name, skewMs } of SKEWS) {
  test(`it is tried again whenever the timer fires, ${name}`, async () => {
    const rooms = fileRooms(new SkewedClock(skewMs));
    const { flusher, add } = flusherOf(rooms);
    const stream = rooms.stream();
    rooms.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".seg") ? diskError("EMFILE") : undefined);
    await add(stream, 2000);
    assert.equal(flusher.isBusy, true);
    rooms.files.gate = null;
    rooms.clock.advance(Math.max(0, 100 + skewMs));
    await rooms.files.idle();
    assert.deepEqual([stream.written, flusher.isBusy], [2000, false]);
  });
}

test("a disk that fails is a fault, and nothing is begun after that", async () => {
  const rooms = fileRooms();
  const { faults, add } = flusherOf(rooms);
  const stream = rooms.stream();
  rooms.files.gate = ({ kind }) => (kind === "write" ? diskError("EIO") : undefined);
  await add(stream, 2000);
  assert.deepEqual(
    faults.map(({ message }) => message),
    ["EIO: as the test wants it"],
  );
  rooms.files.gate = null;
  await add(stream, 2000);
  assert.equal(stream.written, 0);
});
