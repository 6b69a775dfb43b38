import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { isSuperseded, meetStream, type JournaledStream } from "../../../../src/storage/file/survey/journaled-stream.js";
import { Layout, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { RecordKind, type Frame, type JournalRecord } from "../../../../src/storage/file/format/record.js";
import { encodeSidecar, type Sidecar } from "../../../../src/storage/file/format/sidecar.js";
import { MutableState } from "../../../../src/storage/state.js";
import { configOf, recordOf } from "../../../helpers/engine.js";
import { journaledStream } from "../../../helpers/journaled.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const IDENTITY = { id: "a".repeat(24), name: "s", config: configOf() };

function record(more: Partial<JournalRecord>): JournalRecord {
  return {
    kind: RecordKind.append,
    handle: 0,
    position: 0,
    segmentStart: 0,
    change: recordOf("12345"),
    identity: null,
    bypassed: null,
    ...more,
  };
}

function frame(batch: number): Frame {
  return {
    offset: batch * 512,
    sequence: 1,
    batch,
    directoryId: Buffer.alloc(8),
    handles: 1,
    fileBytes: 0,
    recordCount: 1,
    records: Buffer.alloc(0),
    nextOffset: 0,
  };
}

/** A stream whose creation with five bytes is in batch 1 of the journal; its creation is vouched for where it `isSound`. */
async function met(isSound = true): Promise<JournaledStream> {
  const creation = record({ kind: RecordKind.create, identity: IDENTITY });
  const stream = await meetStream(
    { files: systemFiles(false), layout: new Layout(tempDir()) },
    { record: creation, identity: IDENTITY, batch: 1, isSound },
  );
  stream.follow(creation, "j", frame(1));
  return stream;
}

describe("a stream of the journal", () => {
  test("goes on with records that begin where it ends, which shows that it is whole up to there", async () => {
    const stream = await met();
    stream.follow(record({ position: 5 }), "j", frame(2));
    stream.follow(record({ kind: RecordKind.touch, position: 10 }), "j", frame(3));
    assert.deepEqual([stream.tail, stream.provenBatch, stream.pendingRecords, stream.gap, stream.ended], [10, 2, 3, null, false]);
    stream.follow(record({ position: 10, change: recordOf("", { closes: true }) }), "j", frame(4));
    assert.equal(stream.ended, true);
  });

  test("has lost records where the next begins behind its end, or a binding says that it ended later", async () => {
    for (const later of [record({ position: 7 }), record({ kind: RecordKind.bind, position: 7, identity: IDENTITY })]) {
      const stream = await met();
      stream.follow(later, "j", frame(2));
      stream.follow(record({ position: 5 }), "j", frame(3));
      assert.deepEqual([stream.gap, stream.tail, stream.provenBatch], [{ file: "j", offset: 1024, position: 7, tail: 5 }, 5, 1]);
    }
  });

  test("has lost nothing where a binding is older than the batch that was under way", async () => {
    const stream = await met();
    stream.follow(record({ kind: RecordKind.bind, position: 0, identity: IDENTITY }), "j", frame(2));
    assert.equal(stream.gap, null);
  });

  test("is lost with its creation where its directory is only taken, and the journal goes on with it", async () => {
    const layout = new Layout(tempDir());
    const directory = layout.streamDirectory("s");
    const binding = record({ kind: RecordKind.bind, position: 5, identity: IDENTITY });
    mkdirSync(directory, { recursive: true });
    for (const claimed of [true, false]) {
      const own = {
        ...IDENTITY,
        state: new MutableState(5),
        earliest: { position: 0, segmentStart: 0 },
        forks: null,
        softDeleted: false,
        segments: [],
        batch: 0,
        claimed,
      };
      writeFileSync(sidecarPath(directory), encodeSidecar(own));
      assert.equal(
        (await meetStream({ files: systemFiles(false), layout }, { record: binding, identity: IDENTITY, batch: 1, isSound: true }))
          .isBeginningLost,
        claimed,
      );
    }
  });

  for (const [what, files, isLost] of [
    ["no file", {}, true],
    ["an index alone", { "0000000000000000.idx": "x" }, true],
    ["files of bytes that never came", { "0000000000000000.idx": "", "0000000000000000.seg": "" }, true],
    ["bytes", { "0000000000000000.seg": "x" }, false],
    ["something else", { "meta.json.new": "" }, false],
  ] as const)
    test(`${isLost ? "is lost with its creation" : "may be made anew"} where its directory has ${what}`, async () => {
      const layout = new Layout(tempDir());
      const directory = layout.streamDirectory("s");
      mkdirSync(directory, { recursive: true });
      for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
      const binding = record({ kind: RecordKind.bind, position: 5, identity: IDENTITY });
      const first = { record: binding, identity: IDENTITY, batch: 1, isSound: true };
      assert.equal((await meetStream({ files: systemFiles(false), layout }, first)).isBeginningLost, isLost);
    });

  test("is lost with its creation where no checksum vouches for that", async () => {
    assert.deepEqual([(await met()).createdHere, (await met()).isBeginningLost], [true, false]);
    assert.deepEqual([(await met(false)).createdHere, (await met(false)).isBeginningLost], [false, true]);
  });

  test("is deleted, whatever was lost, where its directory is that of a later stream of the name", async () => {
    const stream = await met();
    const other = (more: Partial<Sidecar>): JournaledStream => {
      const sidecar = {
        ...IDENTITY,
        id: "b".repeat(24),
        state: new MutableState(),
        earliest: { position: 0, segmentStart: 0 },
        forks: null,
        softDeleted: false,
        segments: [],
        batch: 2,
        claimed: false,
      };
      return journaledStream(IDENTITY, stream.directory, {
        firstBatch: stream.firstBatch,
        sidecar: { kind: "sound", sidecar: { ...sidecar, ...more } },
      });
    };
    assert.deepEqual([isSuperseded(stream, stream), isSuperseded(other({}), undefined)], [false, true]);
    for (const more of [{ batch: 1 }, { claimed: true }, { id: IDENTITY.id }])
      assert.equal(isSuperseded(other(more), undefined), false, JSON.stringify(more));
  });
});
