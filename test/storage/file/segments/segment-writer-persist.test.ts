import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { crc32 } from "../../../../src/storage/file/format/crc32.js";
import { indexPath, coveredSidecarPath, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { decodeSidecar } from "../../../../src/storage/file/format/sidecar.js";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import { sidecarOf } from "../../../helpers/stream-files.js";
import { bytesOf } from "../../../helpers/engine.js";
import { fileRooms } from "../../../helpers/file-rooms.js";
import { Barrier, diskError } from "../../../helpers/watched-files.js";

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
      { start: 0, length: 3000, crc: crc32(bytesOf(3000)), firstAtMs: 5, newestAtMs: 5, index: "one" },
      { start: 3000, length: 2000, crc: crc32(bytesOf(2000, 1)), firstAtMs: 0, newestAtMs: 0, index: "one" },
    ]);
    assert.equal(sidecar.batch, stream.lastBatch);
    assert.equal(stream.isPersisted, true);
  });

  test("syncs bytes, and writes the sidecar synced, before its rename", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    await rooms.writer.persist(stream);
    const order = rooms.files.operations
      .filter(({ kind }) => ["write", "sync", "rename", "syncDirectory"].includes(kind))
      .map(({ kind, path }) => `${kind} ${/\.seg$|meta\.json|s$/.exec(path)?.[0]}`);
    const steps = ["write .seg", "sync .seg", "write meta.json", "rename meta.json", "syncDirectory s"];
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
    assert.deepEqual(
      [sidecar.state.tail, sidecar.state.closed, sidecar.segments],
      [10, false, [{ start: 0, length: 10, crc: crc32(bytesOf(10)), firstAtMs: 0, newestAtMs: 0, index: "one" }]],
    );
    assert.equal(stream.isPersisted, false);
    await rooms.writer.persist(stream);
    assert.equal(sidecarOf(stream).segments.length, 1 + stream.segments.length - 1);
  });

  test("has a short index in the sidecar, and a longer one in a file of its own, synced before the sidecar's rename", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    for (let index = 0; index < 5; index += 1) rooms.advance(stream, bytesOf(4), { atMs: 10 * index, messages: index });
    await rooms.writer.persist(stream);
    const inline = sidecarOf(stream).segments[0]?.index;
    assert.ok(inline !== null && inline !== undefined && inline !== "one" && inline.inline !== null);
    assert.deepEqual([inline.messages, inline.atMs, inline.length], [10, 40, inline.inline.length]);
    assert.equal(existsSync(indexPath(stream.directory, 0)), false);
    for (let index = 0; index < 200; index += 1) rooms.advance(stream, bytesOf(4), { atMs: 50 + index });
    const calls = rooms.files.operations.length;
    await rooms.writer.persist(stream);
    const inFile = sidecarOf(stream).segments[0]?.index;
    assert.ok(inFile !== null && inFile !== undefined && inFile !== "one");
    const bytes = readFileSync(indexPath(stream.directory, 0));
    assert.deepEqual(inFile, { messages: 210, atMs: 249, length: bytes.length, inline: null, crc: crc32(bytes) });
    assert.deepEqual(bytes.subarray(0, inline.length), Buffer.from(inline.inline));
    const after = rooms.files.operations.slice(calls);
    const [synced, renamed] = [
      after.findIndex(({ kind, path }) => kind === "sync" && path.endsWith(".idx")),
      after.findIndex(({ kind }) => kind === "rename"),
    ];
    assert.ok(synced >= 0 && synced < renamed, JSON.stringify(after.map(({ kind }) => kind)));
  });

  test("of an index goes on where the last one ended, whatever was appended meanwhile", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    const grow = (appends: number): void => {
      for (let index = 0; index < appends; index += 1) rooms.advance(stream, bytesOf(1 + (index % 5)), { atMs: index * 200 });
    };
    for (let round = 0; round < 4; round += 1) {
      grow(100);
      const persisted = rooms.writer.persist(stream);
      grow(100);
      await persisted;
    }
    await rooms.writer.persist(stream);
    const entry = sidecarOf(stream).segments[0]?.index;
    assert.ok(entry !== null && entry !== undefined && entry !== "one");
    assert.equal(entry.messages, 800);
    const bytes = readFileSync(indexPath(stream.directory, 0));
    assert.deepEqual([entry.length, entry.crc], [bytes.length, crc32(bytes)]);
  });

  for (const [what, path] of [
    ["a segment", segmentPath],
    ["the sidecar", sidecarPath],
  ] as const) {
    test(`that finds something else in the place of ${what} is that stream's damage and no fault`, async () => {
      const rooms = fileRooms();
      const stream = rooms.stream();
      rooms.advance(stream, bytesOf(10));
      mkdirSync(path(stream.directory, 0), { recursive: true });
      writeFileSync(`${path(stream.directory, 0)}/in the way`, "");
      await rooms.writer.persist(stream);
      assert.equal(stream.damage?.file, path(stream.directory, 0));
      assert.match(stream.damage?.problem ?? "", /^it can't be written \((EISDIR|ENOTEMPTY)\)$/);
      assert.equal(stream.isPersisted, false);
    });
  }

  test("of a large payload for whose segment there is no place rejects with the damage", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    mkdirSync(segmentPath(stream.directory, 0), { recursive: true });
    await assert.rejects(rooms.writer.bypass(stream, 0, 0, bytesOf(10)), DamagedStreamError);
    assert.ok(stream.damage !== null);
  });

  test("of a notice keeps the sidecar beside it", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    await rooms.writer.persist(stream);
    const before = readFileSync(sidecarPath(stream.directory));
    await rooms.writer.postNotice(stream, "something");
    assert.deepEqual(decodeSidecar(readFileSync(sidecarPath(stream.directory))), {
      kind: "damaged",
      problem: "something",
      isFinal: false,
      isNotice: true,
    });
    assert.deepEqual(readFileSync(`${sidecarPath(stream.directory)}.damaged`), before);
  });

  test("of a notice that there is no place for leaves the sidecar where it is, and the stream untold", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    await rooms.writer.persist(stream);
    const before = readFileSync(sidecarPath(stream.directory));
    const obstacle = `${sidecarPath(stream.directory)}.new`;
    mkdirSync(obstacle);
    await assert.rejects(rooms.writer.postNotice(stream, "something"), DamagedStreamError);
    rmdirSync(obstacle);
    for (const kind of ["open", "makeDirectory", "rename", "syncDirectory"] as const) {
      rooms.files.gate = (operation) => (operation.kind === kind ? diskError("EACCES") : undefined);
      await assert.rejects(rooms.writer.postNotice(stream, "something"), DamagedStreamError, kind);
      assert.deepEqual(readFileSync(sidecarPath(stream.directory)), before, kind);
      assert.equal(stream.disk.hasNotice, false);
    }
    rooms.files.gate = null;
    await rooms.writer.postNotice(stream, "something");
    assert.equal(stream.disk.hasNotice, true);
    stream.disk.hasNotice = false;
    await rooms.writer.postNotice(stream, "something else");
    assert.deepEqual(readFileSync(coveredSidecarPath(stream.directory)), before, "a notice is never kept for the sidecar");
  });

  test("of a notice for a stream that is deleted meanwhile leaves nothing", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    stream.deleted = true;
    await rooms.writer.postNotice(stream, "something");
    assert.ok(!existsSync(stream.directory));
  });

  test("over a notice puts the sidecar back, and what was beside it goes", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    await rooms.writer.persist(stream);
    await rooms.writer.postNotice(stream, "something");
    assert.equal(stream.isPersisted, false);
    await rooms.writer.persist(stream);
    assert.equal(stream.isPersisted, true);
    assert.equal(sidecarOf(stream).state.tail, 10);
    assert.ok(!existsSync(coveredSidecarPath(stream.directory)));
  });

  test("without the right to a directory is that stream's trouble, wherever it is met; a failed sync is everybody's", async () => {
    for (const kind of ["open", "makeDirectory", "rename", "syncDirectory"] as const) {
      const rooms = fileRooms();
      const [bad, good] = [rooms.stream("bad"), rooms.stream("good")];
      for (const stream of [bad, good]) rooms.advance(stream, bytesOf(10));
      rooms.files.gate = (operation) =>
        operation.kind === kind && operation.path.startsWith(bad.directory) ? diskError("EACCES") : undefined;
      await rooms.writer.persist(bad);
      assert.match(bad.damage?.problem ?? "", /^it can't be written \(EACCES\)$/, kind);
      await rooms.writer.persist(good);
      assert.ok(good.isPersisted, kind);
    }
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    rooms.files.gate = ({ kind, path }) =>
      kind === "sync" ? new Error("a sync failed") : kind === "open" && path.endsWith("meta.json.new") ? diskError("EACCES") : undefined;
    await assert.rejects(rooms.writer.persist(stream), /a sync failed/);
    assert.equal(stream.damage, null);
  });

  test("and trimming without the right to remove a file are that stream's trouble, too", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(3000));
    rooms.advance(stream, bytesOf(3000));
    await rooms.writer.persist(stream);
    stream.trim({ position: 3000, segmentStart: 0 }, 9);
    rooms.files.gate = ({ kind }) => (kind === "unlink" ? diskError("EPERM") : undefined);
    await rooms.writer.trim(stream);
    assert.match(stream.damage?.problem ?? "", /EPERM/);
  });

  test("of a damaged stream touches nothing", async () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    rooms.advance(stream, bytesOf(10));
    stream.damage = new DamagedStreamError("s", "meta.json", "something");
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
});
