import assert from "node:assert/strict";
import { test } from "node:test";
import { claimedSidecar } from "../../../../src/storage/file/format/sidecar.js";
import { StreamDisk } from "../../../../src/storage/file/memory/stream-disk.js";
import { configOf } from "../../../helpers/engine.js";

test("a new stream has nothing on disk", () => {
  const disk = new StreamDisk(null);
  assert.deepEqual([disk.hasDirectory, disk.hasSidecar, disk.persistedBatch, disk.entered.size], [false, false, 0, 0]);
});

test("a stream that was loaded has what its sidecar says, until a segment is forgotten", () => {
  const segments = [0, 5].map((start) => ({ start, length: 5, crc: 0, firstAtMs: 0, newestAtMs: 0, index: null }));
  const disk = new StreamDisk({ ...claimedSidecar({ id: "id", name: "s", config: configOf() }), batch: 7, segments });
  assert.deepEqual([disk.hasDirectory, disk.hasSidecar, disk.persistedBatch, [...disk.entered]], [true, true, 7, [0, 5]]);
  disk.fitted.add(0);
  disk.unsynced.add(0);
  disk.forget(0);
  assert.deepEqual([[...disk.entered], disk.fitted.size, disk.unsynced.size], [[5], 0, 0]);
});
