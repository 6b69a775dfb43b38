import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { likelyFrames } from "../../../../src/storage/file/survey/damaged-frames.js";
import {
  encodeIdentity,
  encodeRecord,
  FRAME_HEADER_BYTES,
  RecordKind,
  SECTOR_BYTES,
  sealFrame,
  type JournalRecord,
} from "../../../../src/storage/file/format/record.js";
import { configOf, recordOf } from "../../../helpers/engine.js";

const DIRECTORY_ID = Buffer.from("01234567");
const EXPECTED = { sequence: 4, directoryId: DIRECTORY_ID, lastBatch: null };
const IDENTITY = { id: "a".repeat(24), name: "s", config: configOf() };

function journalRecord(more: Partial<JournalRecord> = {}): JournalRecord {
  return {
    kind: RecordKind.append,
    handle: 3,
    position: 100,
    segmentStart: 64,
    change: recordOf("payload"),
    identity: null,
    bypassed: null,
    ...more,
  };
}

/** A frame of `records` in sectors of its own. */
function frameOf(records: readonly JournalRecord[], batch = 7, sequence = 4): Buffer {
  const frame = Buffer.alloc(8 * SECTOR_BYTES);
  let end = FRAME_HEADER_BYTES;
  for (const record of records) end = encodeRecord(frame, end, record, record.identity === null ? null : encodeIdentity(record.identity));
  sealFrame(frame, end, records.length, { sequence, batch, directoryId: DIRECTORY_ID, handles: 4, fileBytes: 4096 });
  return frame.subarray(0, Math.ceil(end / SECTOR_BYTES) * SECTOR_BYTES);
}

const NAMING = frameOf([journalRecord({ kind: RecordKind.bind, identity: IDENTITY, change: recordOf("") }), journalRecord()]);

function spoilt(bytes: Buffer, from: number, to: number): Buffer {
  return Buffer.from(bytes).fill(0, from, to);
}

function handlesIn(bytes: Buffer): { handles: number[]; ids: (string | undefined)[]; isWhole: boolean; isCertain: boolean } | null {
  const [found] = likelyFrames(bytes, 0, bytes.length, EXPECTED).frames;
  if (found === undefined) return null;
  const { records, isWhole, isCertain } = found;
  return { handles: records.map(({ handle }) => handle), ids: records.map(({ identity }) => identity?.id), isWhole, isCertain };
}

describe("a damaged frame", () => {
  const whole = { handles: [3, 3], ids: [IDENTITY.id, undefined], isWhole: true, isCertain: true };

  test("with any one wrong bit tells for certain what it held", () => {
    const length = NAMING.readUInt32LE(4);
    for (let bit = 0; bit < length * 8; bit += 1) {
      const frame = Buffer.from(NAMING);
      frame.writeUInt8(frame.readUInt8(bit >> 3) ^ (1 << (bit % 8)), bit >> 3);
      assert.deepEqual(handlesIn(frame), whole, `bit ${bit}`);
    }
  });

  test("with a spoilt payload tells what it seems to have held", () => {
    const frame = Buffer.from(NAMING);
    frame.fill("?", NAMING.readUInt32LE(4) - 5, NAMING.readUInt32LE(4));
    assert.deepEqual(handlesIn(frame), { ...whole, isCertain: false });
  });

  test("whose length is spoilt is as long as its records are many", () => {
    const frame = Buffer.from(NAMING);
    frame.writeUInt32LE(0x01010101, 4);
    assert.deepEqual(handlesIn(frame), { ...whole, isCertain: false });
  });

  test("whose first bytes are gone is known by its sequence and its directory", () => {
    assert.deepEqual(handlesIn(spoilt(NAMING, 0, 8)), { ...whole, isCertain: false });
  });

  test("whose records do not add up tells of those before", () => {
    const two = frameOf([journalRecord({ handle: 1 }), journalRecord({ handle: 2 }), journalRecord({ handle: 3 })]);
    two.fill(0xff, FRAME_HEADER_BYTES + 2 * 47, FRAME_HEADER_BYTES + 2 * 47 + 12);
    assert.deepEqual(handlesIn(two), { handles: [1, 2], ids: [undefined, undefined], isWhole: false, isCertain: false });
  });

  for (const [what, bytes] of [
    ["zeros", Buffer.alloc(SECTOR_BYTES)],
    ["noise", Buffer.alloc(SECTOR_BYTES, 0xa5)],
    ["a sound frame of an earlier use of the file", frameOf([journalRecord()], 3, 2)],
    ["what is left of an older frame under a later one", spoilt(NAMING, 0, 24)],
    ["less than a header", NAMING.subarray(0, FRAME_HEADER_BYTES - 1)],
  ] as const) {
    test(`is not what ${what} are taken for`, () => assert.equal(handlesIn(bytes), null));
  }

  test("is followed by the next, as far as frames are whole and as many as are looked for", () => {
    const [one, two] = [frameOf([journalRecord()], 7), frameOf([], 8)].map(
      (frame) => (frame.writeUInt8(0, 8), frame.writeUInt8(1, 9), frame),
    );
    const bytes = Buffer.concat([one ?? NAMING, two ?? NAMING, Buffer.alloc(SECTOR_BYTES)]);
    const { frames, end, areWhole } = likelyFrames(bytes, 0, bytes.length, EXPECTED);
    assert.deepEqual([frames.map(({ frame }) => frame.batch), end, areWhole], [[7, 8], 2 * SECTOR_BYTES, true]);
    assert.equal(likelyFrames(bytes, 0, bytes.length, EXPECTED, 1).frames.length, 1);
  });
});
