import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { emptyChange, FrameEncoder } from "../../../../src/storage/file/journal/frame-encoder.js";
import { JournalFile } from "../../../../src/storage/file/journal/journal-file.js";
import type { JournalEntry } from "../../../../src/storage/file/journal/journal-entry.js";
import { decodeFrame, decodeRecords, RecordKind, type JournalRecord } from "../../../../src/storage/file/format/record.js";
import { bytesOf, configOf, recordOf } from "../../../helpers/engine.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { WatchedFiles } from "../../../helpers/watched-files.js";

const FILE_BYTES = 64 * 1024 * 1024;

async function journalFile(sequence = 5): Promise<JournalFile> {
  const files = new WatchedFiles();
  const path = join(tempDir(), "j");
  return new JournalFile(sequence, path, await files.open(path, "log"), await files.open(path, "write"), 0, 1e6);
}

function streamOf(id: string): FileStream {
  return new FileStream({ id, name: `name of ${id}`, config: configOf() }, "/nowhere", null);
}

function entryOf(stream: FileStream, more: Partial<JournalEntry> = {}): JournalEntry {
  return {
    kind: RecordKind.append,
    stream,
    change: recordOf("x"),
    position: 0,
    segmentStart: 0,
    bypassed: null,
    generation: stream.generation,
    settle: null,
    companion: null,
    ...more,
  };
}

function recordsIn(frame: Buffer | null): JournalRecord[] {
  assert.ok(frame !== null);
  const decoded = decodeFrame(Buffer.concat([frame]), 0);
  assert.ok(decoded !== null);
  assert.equal(decoded.sequence, 5);
  return [...decodeRecords(decoded)];
}

test("a stream's first record in a file says what its handle means, the next ones only use it", async (t) => {
  const encoder = new FrameEncoder(Buffer.alloc(8, 1), false, FILE_BYTES);
  const file = await journalFile();
  t.after(() => file.close());
  const [one, two] = [streamOf("one"), streamOf("two")];
  one.state.tail = 77;
  const first = recordsIn(encoder.encode([entryOf(one), entryOf(two, { kind: RecordKind.create }), entryOf(one)], Infinity, file, 1).frame);
  assert.deepEqual(
    first.map(({ kind, handle, identity }) => [kind, handle, identity?.id ?? null]),
    [
      [RecordKind.bind, 0, "one"],
      [RecordKind.append, 0, null],
      [RecordKind.create, 1, "two"],
      [RecordKind.append, 0, null],
    ],
  );
  assert.equal(first[0]?.position, 77, "the binding tells the durable tail");
  const second = recordsIn(encoder.encode([entryOf(two)], Infinity, file, 2).frame);
  assert.deepEqual(
    second.map(({ kind, handle }) => [kind, handle]),
    [[RecordKind.append, 1]],
  );
  assert.deepEqual([...file.streams], [one, two]);
});

test("a new file binds its streams again", async (t) => {
  const encoder = new FrameEncoder(Buffer.alloc(8), false, FILE_BYTES);
  const [old, file] = [await journalFile(4), await journalFile(5)];
  t.after(async () => [await old.close(), await file.close()]);
  const stream = streamOf("s");
  encoder.encode([entryOf(streamOf("other")), entryOf(stream)], Infinity, old, 1);
  assert.deepEqual(
    recordsIn(encoder.encode([entryOf(stream)], Infinity, file, 2).frame).map(({ kind, handle }) => [kind, handle]),
    [
      [RecordKind.bind, 0],
      [RecordKind.append, 0],
    ],
  );
});

test("barriers and void entries are taken without a record", async (t) => {
  const encoder = new FrameEncoder(Buffer.alloc(8), false, FILE_BYTES);
  const file = await journalFile();
  t.after(() => file.close());
  const stream = streamOf("s");
  const [barrier, outdated] = [entryOf(stream, { kind: null, change: emptyChange(0) }), entryOf(stream, { generation: -1 })];
  assert.deepEqual(encoder.encode([barrier, outdated], Infinity, file, 1), { taken: 2, frame: null });
  const { taken, frame } = encoder.encode([barrier, entryOf(stream), outdated], Infinity, file, 1);
  assert.equal(taken, 3);
  assert.equal(recordsIn(frame).length, 2);
});

test("a frame takes as many entries as it should, and more until one of them is a record", async (t) => {
  const encoder = new FrameEncoder(Buffer.alloc(8), false, FILE_BYTES);
  const file = await journalFile();
  t.after(() => file.close());
  const stream = streamOf("s");
  const barrier = entryOf(stream, { kind: null, change: emptyChange(0) });
  assert.equal(encoder.encode([entryOf(stream), entryOf(stream), entryOf(stream)], 2, file, 1).taken, 2);
  const { taken, frame } = encoder.encode([barrier, barrier, entryOf(stream), entryOf(stream)], 1, file, 1);
  assert.equal(taken, 3);
  assert.equal(recordsIn(frame).length, 1);
});

test("a frame ends before the record that would make it too long, unless that is its first", async (t) => {
  const encoder = new FrameEncoder(Buffer.alloc(8), false, FILE_BYTES);
  const file = await journalFile();
  t.after(() => file.close());
  const stream = streamOf("s");
  const large = entryOf(stream, { change: recordOf(bytesOf(400_000)) });
  const queue = [large, large, large, large];
  const first = encoder.encode(queue, Infinity, file, 1);
  assert.equal(first.taken, 2);
  assert.ok(first.frame !== null && first.frame.length <= encoder.maxFrameBytes);
  assert.equal(recordsIn(first.frame).at(-1)?.change.payload.length, 400_000);
  const huge = encoder.encode([entryOf(stream, { change: recordOf(bytesOf(3_000_000)) }), large], Infinity, file, 2);
  assert.equal(huge.taken, 1);
  assert.equal(recordsIn(huge.frame)[0]?.change.payload.length, 3_000_000);
});

test("a frame takes a quarter of a small file at most, unless its first record takes more", async (t) => {
  const encoder = new FrameEncoder(Buffer.alloc(8), false, 64 * 1024);
  const file = await journalFile();
  t.after(() => file.close());
  assert.equal(encoder.maxFrameBytes, 16 * 1024);
  const stream = streamOf("s");
  const entry = (bytes: number): JournalEntry => entryOf(stream, { change: recordOf(bytesOf(bytes)) });
  const small = Array.from({ length: 400 }, () => entry(3000));
  const { taken, frame } = encoder.encode(small, Infinity, file, 1);
  assert.equal(taken, 5);
  assert.ok(frame !== null && frame.length <= encoder.maxFrameBytes);
  assert.equal(encoder.encode([entry(20_000), entry(1)], Infinity, file, 2).taken, 1);
});

test("a bypassed payload is counted, and only its length and CRC are written", async (t) => {
  const encoder = new FrameEncoder(Buffer.alloc(8), false, FILE_BYTES);
  const file = await journalFile();
  t.after(() => file.close());
  const { frame } = encoder.encode(
    [entryOf(streamOf("s"), { change: recordOf(bytesOf(50_000)), bypassed: { length: 50_000, crc: 7 } })],
    Infinity,
    file,
    1,
  );
  assert.ok(frame !== null && frame.length < 1000);
  assert.deepEqual(recordsIn(frame)[1]?.bypassed, { length: 50_000, crc: 7 });
  assert.equal(file.bypassedBytes, 50_000);
});

test("an empty frame only counts a batch", async (t) => {
  const encoder = new FrameEncoder(Buffer.alloc(8), false, FILE_BYTES);
  const file = await journalFile();
  t.after(() => file.close());
  const { frame } = encoder.encodeEmpty(file, 9);
  assert.deepEqual(recordsIn(frame), []);
  assert.equal(encoder.endOf(1024, frame), 1536);
});

test("a frame tells how many handles its file has given out, and for how long it vouches where syncs do", async (t) => {
  const file = await journalFile();
  t.after(() => file.close());
  await file.allocate();
  for (const [syncs, fileBytes] of [
    [true, Math.floor(1e6 / 512) * 512],
    [false, 0],
  ] as const) {
    const { frame } = new FrameEncoder(Buffer.alloc(8), syncs, FILE_BYTES).encode(
      [entryOf(streamOf("one")), entryOf(streamOf("two"))],
      Infinity,
      file,
      1,
    );
    const decoded = decodeFrame(Buffer.concat([frame ?? Buffer.alloc(0)]), 0);
    assert.deepEqual([decoded?.handles, decoded?.fileBytes], [syncs ? 2 : 4, fileBytes]);
  }
});
