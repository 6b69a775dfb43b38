import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DurableChanges } from "../../../../src/storage/file/writing/durable-changes.js";
import { Flusher } from "../../../../src/storage/file/segments/flusher.js";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { RecordKind } from "../../../../src/storage/file/format/record.js";
import { ForkTies } from "../../../../src/storage/file/writing/fork-ties.js";
import { bytesOf, recordOf } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";

interface Changes {
  readonly rooms: FileRooms;
  readonly changes: DurableChanges;
  readonly left: readonly FileStream[];
  readonly collected: FileStream[];
}

function changesIn(): Changes {
  const rooms = fileRooms();
  const { writer, cache } = rooms;
  const left: FileStream[] = [];
  const collected: FileStream[] = [];
  // Only told of what happens here: nothing is handed in.
  const forkTies = Object.assign(Object.create(ForkTies.prototype) as ForkTies, {
    drop: () => undefined,
    collect: (stream: FileStream) => collected.push(stream),
  });
  const flusher = new Flusher({ ...rooms.parts, writer }, 1e6);
  const loader = { leave: (stream: FileStream): void => void left.push(stream) };
  return { rooms, left, collected, changes: new DurableChanges({ loader, cache, flusher, forkTies, trash: rooms.trash }, 1) };
}

function watched(stream: FileStream): string[] {
  const told: string[] = [];
  stream.observer = {
    advanced: (from, to, closed) => told.push(`${from}-${to}${closed ? " closed" : ""}`),
    settled: () => told.push("settled"),
    deleted: () => told.push("deleted"),
  };
  return told;
}

describe("what has become durable", () => {
  test("is seen by readers, and those who watch are told once for all of a batch", () => {
    const { rooms, changes } = changesIn();
    const stream = rooms.stream();
    const told = watched(stream);
    changes.apply(rooms.entry(stream, "one"), 1);
    changes.apply(rooms.entry(stream, "two", { position: 3, change: recordOf("two", { closes: true }) }), 1);
    assert.deepEqual(told, ["0-3", "3-6 closed"]);
    changes.batchSettled();
    changes.batchSettled();
    assert.deepEqual(told.slice(2), ["settled"]);
    assert.deepEqual([stream.state.tail, stream.cached.read(0, 10).toString()], [6, "onetwo"]);
  });

  test("of another stream comes with it", () => {
    const { rooms, changes } = changesIn();
    const [source, fork] = [rooms.stream("source"), rooms.stream("fork")];
    const link = rooms.entry(source, fork.id, { kind: RecordKind.link, position: 7 });
    changes.apply(rooms.entry(fork, "", { kind: RecordKind.create, companion: link }), 3);
    assert.deepEqual([fork.created, source.forkCount, source.lastBatch, source.state.tail], [true, 1, 3, 0]);
  });

  test("ends what is kept when the last fork is gone", () => {
    const { rooms, changes, collected } = changesIn();
    const source = rooms.stream("source");
    const told = watched(source);
    changes.apply(rooms.entry(source, "f", { kind: RecordKind.link }), 1);
    changes.apply(rooms.entry(source, "", { kind: RecordKind.softDelete }), 2);
    assert.deepEqual([source.standing, told], ["kept", ["deleted"]]);
    changes.apply(rooms.entry(source, "f", { kind: RecordKind.unlink }), 3);
    assert.deepEqual([source.forkCount, collected.length], [0, 2]);
  });

  test("takes a deleted stream out of memory, and its files out of their place", async () => {
    const { rooms, changes, left } = changesIn();
    const stream = rooms.stream();
    const told = watched(stream);
    changes.apply(rooms.entry(stream, "bytes"), 1);
    changes.apply(rooms.entry(stream, "", { kind: RecordKind.delete }), 2);
    assert.deepEqual([stream.standing, left, rooms.cache.bytes, told], ["gone", [stream], 0, ["0-5", "deleted"]]);
    assert.equal(rooms.trash.isVacating("s"), true);
    await rooms.trash.removed(stream);
  });

  test("drops what a trim covers", async () => {
    const { rooms, changes } = changesIn();
    const stream = rooms.stream();
    changes.apply(rooms.entry(stream, "", { change: recordOf(bytesOf(10)) }), 1);
    changes.apply(rooms.entry(stream, "", { kind: RecordKind.trim, position: 10 }), 2);
    await rooms.files.idle();
    assert.deepEqual([stream.earliest, stream.segments.length, stream.lastBatch], [10, 0, 2]);
  });
});
