import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  alignUp,
  claimsFrame,
  decodeFrame,
  decodeHeads,
  decodeRecordAt,
  decodeRecords,
  encodeIdentity,
  encodeRecord,
  FRAME_HEADER_BYTES,
  RecordKind,
  recordLength,
  SECTOR_BYTES,
  sealFrame,
  type JournalRecord,
} from "../../../../src/storage/file/format/record.js";
import { bytesOf, configOf, recordOf } from "../../../helpers/engine.js";

const DIRECTORY_ID = Buffer.from("01234567");
const IDENTITY = { id: "abc", name: "ä/b", config: configOf({ ttlSeconds: 60 }) };

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

/** A file with one frame of `records` at `offset`. */
function fileWith(records: readonly JournalRecord[], offset = 0): Buffer {
  const frame = Buffer.alloc(64 * 1024);
  let end = FRAME_HEADER_BYTES;
  for (const record of records) {
    const identity = record.identity === null ? null : encodeIdentity(record.identity);
    const next = encodeRecord(frame, end, record, identity);
    assert.equal(next - end, recordLength(record.change, identity, record.bypassed !== null));
    end = next;
  }
  sealFrame(frame, end, records.length, { sequence: 9, batch: 2 ** 40, directoryId: DIRECTORY_ID, handles: 7, fileBytes: 4096 });
  return Buffer.concat([Buffer.alloc(offset), frame.subarray(0, end), Buffer.alloc(100)]);
}

function readBack(file: Buffer, offset = 0): JournalRecord[] {
  const frame = decodeFrame(file, offset);
  assert.ok(frame !== null);
  return [...decodeRecords(frame)];
}

describe("a record", () => {
  const records: [what: string, record: JournalRecord][] = [
    ["an append", journalRecord()],
    ["an empty append", journalRecord({ change: recordOf("") })],
    [
      "a closing append of a producer with a sequence",
      journalRecord({
        change: recordOf("x", { closes: true, producer: { id: "wörker", epoch: 2 ** 53 - 1, seq: 2 ** 53 - 2 }, seq: "ä-1", atMs: 1.5 }),
      }),
    ],
    ["an empty sequence", journalRecord({ change: recordOf("x", { seq: "" }) })],
    ["many messages", journalRecord({ change: recordOf("1,\n2,\n", { messages: 2, seq: "s", producer: { id: "p", epoch: 0, seq: 0 } }) })],
    [
      "a creation with many messages",
      journalRecord({ kind: RecordKind.create, identity: IDENTITY, change: recordOf("1,\n2,\n", { messages: 2 }) }),
    ],
    [
      "many messages elsewhere",
      journalRecord({ change: recordOf("", { messages: 2 ** 32 - 1 }), bypassed: { length: 2 ** 33 + 5, crc: 1 } }),
    ],
    ["a creation", journalRecord({ kind: RecordKind.create, identity: IDENTITY })],
    ["a binding", journalRecord({ kind: RecordKind.bind, identity: IDENTITY, change: recordOf("") })],
    ["a payload elsewhere", journalRecord({ change: recordOf(""), bypassed: { length: 2 ** 33 + 5, crc: 0xffffffff } })],
    [
      "a creation whose payload is elsewhere",
      journalRecord({ kind: RecordKind.create, identity: IDENTITY, change: recordOf(""), bypassed: { length: 7, crc: 1 } }),
    ],
    ["a touch", journalRecord({ kind: RecordKind.touch, change: recordOf("", { atMs: 1_700_000_000_123 }) })],
    ["a deletion", journalRecord({ kind: RecordKind.delete, change: recordOf("") })],
    ["a place far behind", journalRecord({ position: 2 ** 53 - 1, segmentStart: 2 ** 53 - 100, handle: 2 ** 32 - 1 })],
  ];
  for (const [what, record] of records) {
    test(`reads back as it was written: ${what}`, () => assert.deepEqual(readBack(fileWith([record])), [record]));
  }

  test("many in one frame keep their order", () => {
    const all = records.map(([, record]) => record);
    assert.deepEqual(readBack(fileWith(all)), all);
  });

  test("a payload elsewhere is told by its length, not by the payload that memory has", () => {
    const record = journalRecord({ change: recordOf("in memory"), bypassed: { length: 9, crc: 5 } });
    assert.deepEqual(readBack(fileWith([record])), [{ ...record, change: { ...record.change, payload: Buffer.alloc(0) } }]);
  });

  test("heads tell kind and handle, and the identity where there is one", () => {
    const frame = decodeFrame(fileWith([journalRecord({ kind: RecordKind.create, identity: IDENTITY }), journalRecord()]), 0);
    assert.ok(frame !== null);
    assert.deepEqual(
      [...decodeHeads(frame)],
      [
        { kind: RecordKind.create, handle: 3, offset: 0, identity: IDENTITY, isBypassed: false },
        {
          kind: RecordKind.append,
          handle: 3,
          offset: recordLength(recordOf("payload"), encodeIdentity(IDENTITY), false),
          identity: null,
          isBypassed: false,
        },
      ],
    );
    assert.deepEqual(
      [...decodeHeads(frame)].map(({ offset }) => decodeRecordAt(frame, offset)),
      [...decodeRecords(frame)].map((record) => ({ ...record, identity: null })),
    );
  });
});

describe("a frame", () => {
  test("tells its file, batch, directory and where the next begins", () => {
    const frame = decodeFrame(fileWith([journalRecord()], SECTOR_BYTES), SECTOR_BYTES);
    assert.ok(frame !== null);
    assert.deepEqual([frame.sequence, frame.batch, frame.recordCount, frame.handles, frame.fileBytes], [9, 2 ** 40, 1, 7, 4096]);
    assert.ok(frame.directoryId.equals(DIRECTORY_ID));
    assert.equal(frame.nextOffset, 2 * SECTOR_BYTES);
  });

  test("is not there when any of its bytes is another", () => {
    const file = fileWith([journalRecord({ change: recordOf(bytesOf(200)) })]);
    const length = file.length - 100;
    for (let at = 0; at < length; at += 1) {
      const spoiled = Buffer.from(file);
      spoiled[at] = (spoiled[at] ?? 0) ^ 1;
      assert.equal(decodeFrame(spoiled, 0), null, `byte ${at}`);
    }
  });

  test("is not there when it was cut off", () => {
    const file = fileWith([journalRecord()]);
    for (let length = 0; length < file.length - 100; length += 1) assert.equal(decodeFrame(file.subarray(0, length), 0), null);
  });

  test("is not there when it says that it is shorter than its header", () => {
    const file = fileWith([journalRecord()]);
    file.writeUInt32LE(FRAME_HEADER_BYTES - 1, 4);
    assert.equal(decodeFrame(file, 0), null);
  });

  test("may be empty", () => assert.deepEqual(readBack(fileWith([])), []));

  test("is claimed by its magic and its file's sequence", () => {
    const file = fileWith([journalRecord()]);
    assert.equal(claimsFrame(file, 0, 9), true);
    assert.equal(claimsFrame(file, 0, 8), false);
    assert.equal(claimsFrame(file, 4, 9), false);
    assert.equal(claimsFrame(file, file.length - FRAME_HEADER_BYTES + 1, 9), false);
  });
});

test("records that contradict themselves are told, although their CRC holds", () => {
  const seal = (harm: (file: Buffer) => void): (() => JournalRecord[]) => {
    const file = fileWith([journalRecord()]);
    harm(file);
    sealFrame(file, file.length - 100, 1, { sequence: 9, batch: 1, directoryId: DIRECTORY_ID, handles: 0, fileBytes: 0 });
    return () => readBack(file);
  };
  assert.throws(
    seal((file) => file.writeUInt8(99, FRAME_HEADER_BYTES + 4)),
    /unknown kind 99/,
  );
  assert.throws(
    seal((file) => file.writeUInt32LE(10, FRAME_HEADER_BYTES)),
    /a record of 10 bytes at byte 0/,
  );
});

test("frames begin at whole sectors", () => {
  assert.deepEqual([0, 1, 511, 512, 513, 1024].map(alignUp), [0, 512, 512, 512, 1024, 1024]);
});
