import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, test } from "node:test";
import { segmentPath } from "../../../src/storage/file/layout.js";
import { WriteBehind } from "../../../src/storage/file/write-behind.js";
import { bytesOf } from "../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../helpers/file-rooms.js";
import { diskError } from "../../helpers/watched-files.js";

function writeBehindIn(rooms: FileRooms, flushAtBytes: number): { writeBehind: WriteBehind; faults: Error[] } {
  const faults: Error[] = [];
  const { writer, cache } = rooms;
  return { writeBehind: new WriteBehind({ writer, cache, flushAtBytes, fault: (error) => faults.push(error) }), faults };
}

describe("writing behind the journal", () => {
  test("begins with the streams that have waited longest, and stops when half as much waits", async () => {
    const rooms = fileRooms();
    const { writeBehind } = writeBehindIn(rooms, 3000);
    const streams = ["a", "b", "c"].map((name) => rooms.stream(name));
    for (const stream of streams) {
      rooms.advance(stream, bytesOf(1001));
      writeBehind.add(stream);
      writeBehind.relieve();
    }
    await rooms.files.idle();
    assert.deepEqual(streams.map(({ written }) => written), [1001, 1001, 0]);
  });

  test("leaves a stream out that is gone", async () => {
    const rooms = fileRooms();
    const { writeBehind } = writeBehindIn(rooms, 10);
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(100));
    writeBehind.add(stream);
    writeBehind.remove(stream);
    writeBehind.relieve();
    await rooms.files.idle();
    assert.equal(stream.written, 0);
  });

  for (const [code, isFault] of [["ENOSPC", false], ["EMFILE", false], ["EIO", true]] as const) {
    test(`${code} is ${isFault ? "a fault" : "tried again with the next append"}`, async () => {
      const rooms = fileRooms();
      const { writeBehind, faults } = writeBehindIn(rooms, 10);
      const stream = rooms.stream();
      rooms.advance(stream, bytesOf(100));
      writeBehind.add(stream);
      rooms.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".seg") ? diskError(code) : undefined);
      writeBehind.relieve();
      await rooms.files.idle();
      assert.equal(faults.length, isFault ? 1 : 0);
      rooms.files.gate = null;
      writeBehind.relieve();
      await rooms.files.idle();
      assert.equal(stream.written, 100);
    });
  }

  test("removes segments that are no longer kept; a disk that fails there is a fault", async () => {
    const rooms = fileRooms();
    const { writeBehind, faults } = writeBehindIn(rooms, 1e6);
    const stream = rooms.stream();
    for (const seed of [0, 1]) rooms.advance(stream, bytesOf(3000, seed));
    await rooms.writer.persist(stream);
    stream.trim({ position: 3000, segmentStart: 0 }, 9);
    rooms.files.gate = ({ kind }) => (kind === "unlink" ? diskError("EIO") : undefined);
    writeBehind.trim(stream);
    await rooms.files.idle();
    assert.equal(faults.length, 1);
    rooms.files.gate = null;
    writeBehind.trim(stream);
    await rooms.files.idle();
    assert.deepEqual([0, 3000].map((start) => existsSync(segmentPath(stream.directory, start))), [false, true]);
  });
});
