import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesOf } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { diskError } from "../../../helpers/watched-files.js";

/** Rooms with a stream in its own files, and how often the directory of its directory was synced. */
async function persisted(): Promise<{ readonly rooms: FileRooms; readonly syncs: () => number }> {
  const rooms = fileRooms();
  const stream = rooms.stream();
  rooms.advance(stream, bytesOf(10));
  await rooms.writer.persist(stream);
  const shard = rooms.layout.shard(stream.directory);
  return { rooms, syncs: () => rooms.files.operations.filter(({ kind, path }) => kind === "syncDirectory" && path === shard).length };
}

test("the entry of a stream's directory is synced once", async () => {
  const { rooms, syncs } = await persisted();
  assert.equal(syncs(), 0);
  await rooms.shards.sync();
  await rooms.shards.sync();
  assert.equal(syncs(), 1);
});

test("the entry of a stream's directory is synced again when that failed", async () => {
  const { rooms, syncs } = await persisted();
  rooms.files.gate = ({ kind }) => (kind === "syncDirectory" ? diskError("ENOSPC") : undefined);
  await assert.rejects(rooms.shards.sync(), { code: "ENOSPC" });
  rooms.files.gate = null;
  const before = syncs();
  await rooms.shards.sync();
  assert.equal(syncs(), before + 1);
});
