import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { coveredSidecarPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { claimedSidecar, decodeSidecar, isNotice } from "../../../../src/storage/file/format/sidecar.js";
import { SidecarWriter } from "../../../../src/storage/file/segments/sidecar-writer.js";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import { ended, fileRooms } from "../../../helpers/file-rooms.js";
import { failing } from "../../../helpers/watched-files.js";

describe("a stream's directory", () => {
  test("is taken once, with its entry", async () => {
    const rooms = fileRooms();
    const writer = new SidecarWriter(rooms.parts, rooms.shards);
    const stream = rooms.stream();
    await writer.claim(stream);
    const read = decodeSidecar(readFileSync(sidecarPath(stream.directory)));
    assert.deepEqual(read, { kind: "sound", sidecar: claimedSidecar(stream) });
    const { hasDirectory, hasSidecar, hasEntry } = stream.disk;
    assert.deepEqual([hasDirectory, hasSidecar, hasEntry], [true, true, true]);
    const count = rooms.files.operations.length;
    await writer.claim(stream);
    assert.equal(rooms.files.operations.length, count);
  });

  test("keeps the sidecar beside a notice until the next takes its place", async () => {
    const rooms = fileRooms();
    const writer = new SidecarWriter(rooms.parts, rooms.shards);
    const stream = rooms.stream();
    await writer.claim(stream);
    const before = readFileSync(sidecarPath(stream.directory));
    await writer.postNotice(stream, "why");
    assert.ok(isNotice(readFileSync(sidecarPath(stream.directory))) && stream.disk.hasNotice);
    assert.deepEqual(readFileSync(coveredSidecarPath(stream.directory)), before);
    await writer.write(stream, claimedSidecar(stream));
    await writer.put(stream);
    assert.ok(!existsSync(coveredSidecarPath(stream.directory)) && !stream.disk.hasNotice);
  });

  test("gets no notice in the place of a sidecar that can't be read: that may be readable later", async () => {
    const rooms = fileRooms();
    const writer = new SidecarWriter(rooms.parts, rooms.shards);
    const stream = rooms.stream();
    await writer.claim(stream);
    const before = readFileSync(sidecarPath(stream.directory));
    rooms.files.gate = failing("EIO", ["read"], /meta\.json$/);
    await assert.rejects(writer.postNotice(stream, "why"), DamagedStreamError);
    // Too many open files are no damage: it is tried again.
    rooms.files.gate = failing("EMFILE", ["open"], /meta\.json$/);
    await assert.rejects(writer.postNotice(stream, "why"), { code: "EMFILE" });
    assert.deepEqual([readFileSync(sidecarPath(stream.directory)), stream.disk.hasNotice], [before, false]);
  });

  test("that a notice made goes with the stream when it is deleted", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    await new SidecarWriter(rooms.parts, rooms.shards).postNotice(stream, "why");
    rooms.trash.take(stream);
    await rooms.trash.removed(stream);
    assert.ok(!existsSync(stream.directory));
    await ended(rooms);
  });
});
