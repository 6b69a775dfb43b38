import type { AppendRecord, Position, ProducerStamp, StreamConfig } from "../../storage.js";
import { crc32 } from "./crc32.js";

/*
 * The journal's format, version 1. All numbers are little-endian. A journal file is a run of frames, each the work of
 * one sync and each beginning at a multiple of 512 bytes, so that no write touches a sector that holds an older frame.
 *
 * Frame:   0 magic "SDJ1"   4 u32 length (header and records)   8 u32 CRC-32 of bytes 12..length
 *         12 u32 records   16 u64 file sequence   24 u64 batch   32 8 bytes directory id
 *         40 u32 handles that the file has given out by then   44 u32 sectors that the file has at least
 *         48 records...
 * Record:  0 u32 length    4 u8 kind   5 u8 flags   6 u16 producer id bytes   8 u16 Stream-Seq bytes   10 u16 zero
 *         12 u32 handle   16 u64 position   24 u64 segment start   32 f64 time (ms since 1970)
 *         40 [u64 epoch, u64 seq, producer id] [Stream-Seq] [u32 messages] then by kind:
 *            bind, create: u32 length and the JSON of the identity;
 *            create, append: the payload, or for a bypassed one u64 its length and u32 its CRC-32.
 *         The payload of link and unlink is a fork's id; a link's position is where the bytes end that the fork needs.
 *         A trim's position is the earliest byte that is kept, its segment start that of the segment before.
 *
 * A handle is a small number for a stream within one journal file: `bind` (or `create`) comes before its other uses.
 */

/** Frames begin at multiples of this; the unit that a disk writes whole. */
export const SECTOR_BYTES = 512;
/** What takes the place of a frame's first sector so that there is none. */
export const NO_FRAME = Buffer.alloc(SECTOR_BYTES);
/** Bytes before the first record of a frame. */
export const FRAME_HEADER_BYTES = 48;
/** Length of a directory's id, in bytes. */
export const DIRECTORY_ID_BYTES = 8;
/** Bytes of a record before what not every record has. */
export const RECORD_HEADER_BYTES = 40;
/** Where a frame's bytes begin that its CRC is of. */
export const FRAME_CRC_FROM = 12;
const FRAME_MAGIC = 0x314a4453;
const PRODUCER_BYTES = 16;
const BYPASS_BYTES = 12;
const IDENTITY_LENGTH_BYTES = 4;

/** What a record does. */
export const RecordKind = {
  bind: 1,
  create: 2,
  append: 3,
  touch: 4,
  delete: 5,
  trim: 6,
  link: 7,
  unlink: 8,
  softDelete: 9,
} as const;
/** One of the kinds, as stored. */
export type RecordKindCode = (typeof RecordKind)[keyof typeof RecordKind];

const FLAG_CLOSES = 1;
const FLAG_PRODUCER = 2;
const FLAG_SEQ = 4;
const FLAG_BYPASSED = 8;
/** The payload is not just one message. */
const FLAG_MESSAGES = 16;
const MESSAGES_BYTES = 4;
/** All flags that a record can have. */
export const RECORD_FLAGS = FLAG_CLOSES | FLAG_PRODUCER | FLAG_SEQ | FLAG_BYPASSED | FLAG_MESSAGES;

/** Which stream a handle means. */
export interface StreamIdentity {
  readonly id: string;
  readonly name: string;
  readonly config: StreamConfig;
}

/** A payload that is in its segment, not in the journal. */
export interface BypassedPayload {
  readonly length: number;
  readonly crc: number;
}

/** One record, as it is written and as it is read back. */
export interface JournalRecord {
  readonly kind: RecordKindCode;
  readonly handle: number;
  readonly position: Position;
  readonly segmentStart: Position;
  /** For touch, delete, softDelete and trim only the time counts; for link and unlink the payload. */
  readonly change: AppendRecord;
  /** Set for bind and create. */
  readonly identity: StreamIdentity | null;
  /** Set when the payload is in the segment; `change.payload` is empty then. */
  readonly bypassed: BypassedPayload | null;
}

/** Bytes that a record takes in a frame. `identity` is the JSON of the identity, for bind and create. */
export function recordLength(change: AppendRecord, identity: Buffer | null, bypassed: boolean): number {
  let length = RECORD_HEADER_BYTES;
  if (change.producer !== null) length += PRODUCER_BYTES + Buffer.byteLength(change.producer.id, "utf8");
  if (change.seq !== null) length += Buffer.byteLength(change.seq, "utf8");
  if (change.messages !== 1) length += MESSAGES_BYTES;
  if (identity !== null) length += IDENTITY_LENGTH_BYTES + identity.length;
  return length + (bypassed ? BYPASS_BYTES : change.payload.length);
}

/** An identity as it stands in a record. */
export function encodeIdentity(identity: StreamIdentity): Buffer {
  const { id, name, config } = identity;
  const { contentType, createdAtMs, ttlSeconds, expiresAtMs, forkedFrom } = config;
  return Buffer.from(
    JSON.stringify({ id, name, contentType, createdAtMs, ttlSeconds, expiresAtMs, forkedFrom }),
    "utf8",
  );
}

/** Writes one record into `target` at `offset`; returns where the next one goes. */
export function encodeRecord(target: Buffer, offset: number, record: JournalRecord, identity: Buffer | null): number {
  const { change, bypassed } = record;
  const { producer, seq } = change;
  let flags = change.closes ? FLAG_CLOSES : 0;
  let end = offset + RECORD_HEADER_BYTES;
  let producerIdBytes = 0;
  let seqBytes = 0;
  if (producer !== null) {
    flags |= FLAG_PRODUCER;
    writeUint64(target, end, producer.epoch);
    writeUint64(target, end + 8, producer.seq);
    producerIdBytes = target.write(producer.id, end + PRODUCER_BYTES, "utf8");
    end += PRODUCER_BYTES + producerIdBytes;
  }
  if (seq !== null) {
    flags |= FLAG_SEQ;
    seqBytes = target.write(seq, end, "utf8");
    end += seqBytes;
  }
  if (change.messages !== 1) {
    flags |= FLAG_MESSAGES;
    end = target.writeUInt32LE(change.messages, end);
  }
  if (identity !== null) {
    target.writeUInt32LE(identity.length, end);
    end += IDENTITY_LENGTH_BYTES + identity.copy(target, end + IDENTITY_LENGTH_BYTES);
  }
  if (bypassed !== null) {
    flags |= FLAG_BYPASSED;
    writeUint64(target, end, bypassed.length);
    target.writeUInt32LE(bypassed.crc, end + 8);
    end += BYPASS_BYTES;
  } else {
    target.set(change.payload, end);
    end += change.payload.length;
  }
  target.writeUInt32LE(end - offset, offset);
  target.writeUInt32LE(record.kind | (flags << 8) | (producerIdBytes << 16), offset + 4);
  target.writeUInt32LE(seqBytes, offset + 8);
  target.writeUInt32LE(record.handle, offset + 12);
  writeUint64(target, offset + 16, record.position);
  writeUint64(target, offset + 24, record.segmentStart);
  target.writeDoubleLE(change.atMs, offset + 32);
  return end;
}

/** What says which frame this is, and what its file is by then. */
export interface FrameIdentity {
  readonly sequence: number;
  readonly batch: number;
  readonly directoryId: Buffer;
  /** Handles that the file has given out, this frame's included: damage between two frames has hidden no more. */
  readonly handles: number;
  /** The least length of the file in bytes, in whole sectors; a shorter one was cut off. 0 where nobody can say. */
  readonly fileBytes: number;
}

/** Fills in the header of the frame at the start of `target`, after its records; `length` includes the header. */
export function sealFrame(target: Buffer, length: number, records: number, frame: FrameIdentity): void {
  target.writeUInt32LE(FRAME_MAGIC, 0);
  target.writeUInt32LE(length, 4);
  target.writeUInt32LE(records, 12);
  writeUint64(target, 16, frame.sequence);
  writeUint64(target, 24, frame.batch);
  frame.directoryId.copy(target, 32);
  target.writeUInt32LE(frame.handles, 40);
  target.writeUInt32LE(Math.floor(frame.fileBytes / SECTOR_BYTES), 44);
  target.writeUInt32LE(crc32(target.subarray(FRAME_CRC_FROM, length)), 8);
}

/** A whole frame with these records, up to where the next one begins. */
export function encodeFrame(identity: FrameIdentity, recordCount: number, records: Buffer): Buffer {
  const length = FRAME_HEADER_BYTES + records.length;
  const frame = Buffer.alloc(alignUp(length));
  records.copy(frame, FRAME_HEADER_BYTES);
  sealFrame(frame, length, recordCount, identity);
  return frame;
}

/** A frame read back: `records` are its bytes, `nextOffset` where the next frame begins. */
export interface Frame extends FrameIdentity {
  readonly offset: number;
  readonly recordCount: number;
  readonly records: Buffer;
  readonly nextOffset: number;
}

/** Reads the frame at `offset` of a journal file; `null` when there is no whole and sound frame. */
export function decodeFrame(file: Buffer, offset: number): Frame | null {
  if (offset + FRAME_HEADER_BYTES > file.length || file.readUInt32LE(offset) !== FRAME_MAGIC) return null;
  const length = file.readUInt32LE(offset + 4);
  if (length < FRAME_HEADER_BYTES || offset + length > file.length) return null;
  const frame = file.subarray(offset, offset + length);
  return crc32(frame.subarray(FRAME_CRC_FROM)) === frame.readUInt32LE(8) ? frameOf(frame, offset) : null;
}

/** Takes `bytes` for the frame at `offset`: nothing is compared with its checksum. They are at least a header. */
export function frameOf(bytes: Buffer, offset: number): Frame {
  return {
    offset,
    sequence: readUint64(bytes, 16),
    batch: readUint64(bytes, 24),
    directoryId: bytes.subarray(32, 40),
    handles: bytes.readUInt32LE(40),
    fileBytes: bytes.readUInt32LE(44) * SECTOR_BYTES,
    recordCount: bytes.readUInt32LE(12),
    records: bytes.subarray(FRAME_HEADER_BYTES),
    nextOffset: alignUp(offset + bytes.length),
  };
}

/** Whether the bytes at `offset` claim to be a frame of the file `sequence`; their CRC is not looked at. */
export function claimsFrame(file: Buffer, offset: number, sequence: number): boolean {
  if (offset + FRAME_HEADER_BYTES > file.length) return false;
  return file.readUInt32LE(offset) === FRAME_MAGIC && readUint64(file, offset + 16) === sequence;
}

/** Whether the bytes at `offset` begin as a frame does. */
export function hasFrameMagic(file: Buffer, offset: number): boolean {
  return file.readUInt32LE(offset) === FRAME_MAGIC;
}

/** The next multiple of a sector. */
export function alignUp(offset: number): number {
  return Math.ceil(offset / SECTOR_BYTES) * SECTOR_BYTES;
}

/** The little of a record that says which stream it is for and what it does. */
export interface RecordHead {
  readonly kind: RecordKindCode;
  readonly handle: number;
  /** Where the record is in its frame's. */
  readonly offset: number;
  /** Set for bind and create. */
  readonly identity: StreamIdentity | null;
  /** Whether its payload is in the segment. */
  readonly isBypassed: boolean;
}

/** Reads only the heads of a frame's records. Throws a RangeError where they contradict themselves. */
export function* decodeHeads(frame: Frame): Generator<RecordHead> {
  for (const offset of recordOffsets(frame)) {
    const bytes = recordAt(frame, offset);
    const kind = kindOf(bytes.readUInt8(4));
    const isNaming = kind === RecordKind.bind || kind === RecordKind.create;
    yield {
      kind,
      handle: bytes.readUInt32LE(12),
      offset,
      identity: isNaming ? decodeRecord(bytes).identity : null,
      isBypassed: (bytes.readUInt8(5) & FLAG_BYPASSED) !== 0,
    };
  }
}

/** The frame with only those of its records that `keep` lets through, which it is asked in order. */
export function keepRecords(frame: Frame, keep: (head: RecordHead) => boolean): Frame {
  const kept = [...decodeHeads(frame)].filter(keep).map(({ offset }) => recordAt(frame, offset));
  return { ...frame, recordCount: kept.length, records: Buffer.concat(kept) };
}

/** Reads the records of a frame whose CRC has been checked. Throws a RangeError where they contradict themselves. */
export function* decodeRecords(frame: Frame): Generator<JournalRecord> {
  for (const offset of recordOffsets(frame)) yield decodeRecord(recordAt(frame, offset));
}

/** Reads one record, for whoever knows the identities already: that is left out. `offset` is from its head. */
export function decodeRecordAt(frame: Frame, offset: number): JournalRecord {
  return decodeRecord(recordAt(frame, offset), false);
}

function* recordOffsets(frame: Frame): Generator<number> {
  let offset = 0;
  for (let count = 0; count < frame.recordCount; count += 1) {
    const length = frame.records.readUInt32LE(offset);
    if (length < RECORD_HEADER_BYTES)
      throw new RangeError(`a record of ${length} bytes at byte ${offset} of its frame`);
    yield offset;
    offset += length;
  }
}

function recordAt({ records }: Frame, offset: number): Buffer {
  return records.subarray(offset, offset + records.readUInt32LE(offset));
}

/**
 * Reads the record that `bytes` are, with its identity where `isNaming`. Throws where they contradict themselves: a
 * RangeError, or a SyntaxError of JSON.
 */
export function decodeRecord(bytes: Buffer, isNaming = true): JournalRecord {
  const kind = kindOf(bytes.readUInt8(4));
  const flags = bytes.readUInt8(5);
  const cursor = { offset: RECORD_HEADER_BYTES };
  const producer = (flags & FLAG_PRODUCER) === 0 ? null : decodeProducer(bytes, cursor);
  const seq = (flags & FLAG_SEQ) === 0 ? null : takeText(bytes, cursor, bytes.readUInt16LE(8));
  const messages = (flags & FLAG_MESSAGES) === 0 ? 1 : takeMessages(bytes, cursor);
  const hasIdentity = kind === RecordKind.bind || kind === RecordKind.create;
  const identityJson = hasIdentity ? takeIdentity(bytes, cursor) : null;
  const isBypassed = (flags & FLAG_BYPASSED) !== 0;
  const { offset } = cursor;
  return {
    kind,
    handle: bytes.readUInt32LE(12),
    position: readUint64(bytes, 16),
    segmentStart: readUint64(bytes, 24),
    change: {
      payload: isBypassed ? bytes.subarray(0, 0) : bytes.subarray(offset),
      messages,
      closes: (flags & FLAG_CLOSES) !== 0,
      producer,
      seq,
      atMs: bytes.readDoubleLE(32),
    },
    identity: identityJson === null || !isNaming ? null : decodeIdentity(identityJson),
    bypassed: isBypassed ? { length: readUint64(bytes, offset), crc: bytes.readUInt32LE(offset + 8) } : null,
  };
}

const KINDS: readonly RecordKindCode[] = Object.values(RecordKind);

function kindOf(code: number): RecordKindCode {
  const kind = KINDS.find((known) => known === code);
  if (kind === undefined) throw new RangeError(`a record of unknown kind ${code}`);
  return kind;
}

function decodeProducer(bytes: Buffer, cursor: { offset: number }): ProducerStamp {
  const epoch = readUint64(bytes, cursor.offset);
  const seq = readUint64(bytes, cursor.offset + 8);
  cursor.offset += PRODUCER_BYTES;
  return { id: takeText(bytes, cursor, bytes.readUInt16LE(6)), epoch, seq };
}

function takeMessages(bytes: Buffer, cursor: { offset: number }): number {
  const messages = bytes.readUInt32LE(cursor.offset);
  cursor.offset += MESSAGES_BYTES;
  return messages;
}

function takeIdentity(bytes: Buffer, cursor: { offset: number }): Buffer {
  const start = cursor.offset + IDENTITY_LENGTH_BYTES;
  cursor.offset = start + bytes.readUInt32LE(cursor.offset);
  return bytes.subarray(start, cursor.offset);
}

function decodeIdentity(json: Buffer): StreamIdentity {
  // The CRC has vouched for these bytes: they are what encodeIdentity wrote.
  const { id, name, contentType, createdAtMs, ttlSeconds, expiresAtMs, forkedFrom } = JSON.parse(json.toString()) as {
    id: string;
    name: string;
  } & StreamConfig;
  return { id, name, config: { contentType, createdAtMs, ttlSeconds, expiresAtMs, forkedFrom } };
}

function takeText(bytes: Buffer, cursor: { offset: number }, length: number): string {
  const text = bytes.toString("utf8", cursor.offset, cursor.offset + length);
  cursor.offset += length;
  return text;
}

const TWO_TO_32 = 2 ** 32;

function writeUint64(target: Buffer, offset: number, value: number): void {
  target.writeUInt32LE(value % TWO_TO_32, offset);
  target.writeUInt32LE(Math.floor(value / TWO_TO_32), offset + 4);
}

function readUint64(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset) + bytes.readUInt32LE(offset + 4) * TWO_TO_32;
}
