import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { applyRecord, leavesGap, type Consequences, type RecordedChange } from "../../../../src/storage/file/journal/apply-record.js";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { RecordKind } from "../../../../src/storage/file/format/record.js";
import { recordOf } from "../../../helpers/engine.js";
import { fileRooms } from "../../../helpers/file-rooms.js";

function change(kind: RecordedChange["kind"], more: Partial<RecordedChange> = {}): RecordedChange {
  return { kind, position: 0, segmentStart: 0, change: recordOf(""), bypassed: null, ...more };
}

function told(into: string[]): Consequences<FileStream, RecordedChange> {
  const tell = (what: string) => (): void => void into.push(what);
  return {
    created: tell("created"),
    appended: tell("appended"),
    trimmed: tell("trimmed"),
    unlinked: tell("unlinked"),
    softDeleted: tell("soft-deleted"),
    deleted: tell("deleted"),
  };
}

describe("a change that is recorded", () => {
  for (const [name, more, consequences, found] of [
    ["create", { change: recordOf("12", { closes: true }) }, ["created", "appended"], { tail: 2, closed: true }],
    ["append", { change: recordOf("123", { atMs: 5 }) }, ["appended"], { tail: 3, touched: 5 }],
    ["append", { bypassed: { length: 9, crc: 1 } }, ["appended"], { tail: 9 }],
    ["touch", { change: recordOf("", { atMs: 7 }) }, [], { touched: 7 }],
    ["trim", { position: 8, segmentStart: 4 }, ["trimmed"], { earliest: 8 }],
    ["link", { change: recordOf("fork"), position: 3 }, [], { forks: 1 }],
    ["unlink", { change: recordOf("old") }, ["unlinked"], {}],
    ["softDelete", {}, ["soft-deleted"], { standing: "kept" }],
  ] as const) {
    test(`as ${name} changes the stream's state, and then what depends on it: ${JSON.stringify(found)}`, () => {
      const stream = fileRooms().stream();
      const seen: string[] = [];
      void applyRecord(stream, change(RecordKind[name], more), 3, told(seen));
      const { tail, closed, touchedAtMs: touched } = stream.state;
      const expected = Object.assign({ tail: 0, closed: false, touched: 0, earliest: 0, forks: 0, standing: "live" }, found);
      assert.deepEqual({ tail, closed, touched, earliest: stream.earliest, forks: stream.forkCount, standing: stream.standing }, expected);
      assert.deepEqual([seen, stream.lastBatch], [consequences, 3]);
    });
  }

  test("as a deletion is left to whoever knows what goes with the stream, and a binding or a barrier is none", () => {
    const stream = fileRooms().stream();
    const seen: string[] = [];
    for (const kind of [RecordKind.bind, null, RecordKind.delete]) void applyRecord(stream, change(kind), 3, told(seen));
    assert.deepEqual([seen, stream.lastBatch], [["deleted"], 0]);
  });
});

describe("a record after a stream's end", () => {
  for (const [name, position, isGap] of [
    ["append", 5, false],
    ["append", 6, true],
    ["append", 4, true],
    ["create", 5, false],
    ["touch", 9, false],
    ["bind", 4, false],
    ["bind", 6, true],
  ] as const) {
    test(`at 5, which is ${name} at ${position}, shows ${isGap ? "that records are" : "nothing"} missing`, () =>
      assert.equal(leavesGap(change(RecordKind[name], { position }), 5), isGap));
  }
});
