import assert from "node:assert/strict";
import { test } from "node:test";
import { RecordKind } from "../../../../src/storage/file/format/record.js";
import { giveBack, makesRoom } from "../../../../src/storage/file/journal/journal-entry.js";
import { recordOf } from "../../../helpers/engine.js";
import { fileRooms } from "../../../helpers/file-rooms.js";

const { append, create, delete: remove, link, softDelete, touch, trim, unlink } = RecordKind;

test("deletions and trims make room", () => {
  assert.deepEqual(
    [append, create, remove, link, softDelete, touch, trim, unlink, null].filter((kind) => makesRoom({ kind })),
    [remove, softDelete, trim],
  );
});

const cases: readonly [title: string, kinds: readonly (number | null)[], how: "storage-full" | "overloaded", spared: readonly number[]][] =
  [
    ["what makes room is spared beside what does not", [append, remove, append, trim], "storage-full", [1, 3]],
    ["what makes room fails where nothing else does", [remove, softDelete], "storage-full", []],
    ["a barrier is nothing else", [remove, null], "storage-full", []],
    ["nothing is spared where more room would not help", [append, remove], "overloaded", []],
    ["nothing is spared of a stream that was to be made", [create, remove], "storage-full", []],
  ];

for (const [title, kinds, how, indexes] of cases)
  test(title, () => {
    const rooms = fileRooms();
    const stream = rooms.stream();
    const byNumber = new Map(Object.values(RecordKind).map((kind) => [kind as number, kind]));
    const entries = kinds.map((kind, index) =>
      rooms.entry(stream, `${index}`, { kind: kind === null ? null : (byNumber.get(kind) ?? null), change: recordOf("") }),
    );
    stream.pending = entries.length;
    const { failing, spared } = giveBack(entries, how);
    assert.deepEqual(
      spared.map(({ settle }) => entries.findIndex((entry) => entry.settle === settle)),
      indexes,
    );
    assert.equal(failing.length, entries.length - indexes.length);
    assert.equal(stream.pending, indexes.length);
    assert.ok(spared.every(({ generation }) => generation === stream.generation));
    assert.ok(failing.every(({ generation }) => generation < stream.generation));
  });
