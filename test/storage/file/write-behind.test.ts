import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { segmentPath } from "../../../src/storage/file/layout.js";
import { WriteBehind } from "../../../src/storage/file/write-behind.js";
import { bytesOf } from "../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../helpers/file-rooms.js";
import { diskError } from "../../helpers/watched-files.js";

function writeBehindOf(rooms: FileRooms): { writeBehind: WriteBehind; faults: Error[] } {
  const faults: Error[] = [];
  const { writer, cache } = rooms;
  return { writeBehind: new WriteBehind({ writer, cache, flushAtBytes: 1000, fault: (error) => faults.push(error) }), faults };
}

test("bytes go to their segments when many wait, those of the stream that waited longest first", async () => {
  const rooms = fileRooms();
  const { writeBehind, faults } = writeBehindOf(rooms);
  const [old, young] = [rooms.stream("old"), rooms.stream("young")];
  for (const [stream, length] of [[old, 600], [young, 400]] as const) {
    rooms.advance(stream, bytesOf(length));
    writeBehind.add(stream);
  }
  await rooms.files.idle();
  assert.equal(rooms.cache.unwrittenBytes, 1000);
  rooms.advance(young, bytesOf(1));
  writeBehind.add(young);
  await rooms.files.idle();
  assert.deepEqual(readFileSync(segmentPath(old.directory, 0)), bytesOf(600));
  assert.ok(!existsSync(young.directory), "few enough wait");
  assert.deepEqual(faults, []);
});

test("what fails for now is tried again, and what fails for good is a fault", async () => {
  const rooms = fileRooms();
  const { writeBehind, faults } = writeBehindOf(rooms);
  const stream = rooms.stream();
  for (const code of ["ENOSPC", "EIO"]) {
    rooms.files.gate = ({ kind }) => (kind === "write" ? diskError(code) : undefined);
    rooms.advance(stream, bytesOf(1001));
    writeBehind.add(stream);
    await rooms.files.idle();
    assert.equal(faults.length, code === "EIO" ? 1 : 0);
  }
  rooms.files.gate = null;
  writeBehind.add(stream);
  await rooms.files.idle();
  assert.equal(rooms.cache.unwrittenBytes, 0);
});

test("a dropped stream counts no more, however much of it was written", async () => {
  const rooms = fileRooms();
  const { writeBehind } = writeBehindOf(rooms);
  const stream = rooms.stream();
  rooms.advance(stream, bytesOf(500));
  await rooms.writer.flush(stream);
  rooms.advance(stream, bytesOf(300, 1));
  writeBehind.add(stream);
  writeBehind.drop(stream);
  assert.deepEqual([rooms.cache.unwrittenBytes, rooms.cache.bytes], [0, 0]);
});
