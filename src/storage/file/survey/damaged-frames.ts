import { byteChanges, isOneBit } from "./crc-changes.js";
import { crc32 } from "../format/crc32.js";
import type { ExpectedJournal } from "../journal/journal-reader.js";
import {
  alignUp,
  decodeFrame,
  decodeRecord,
  FRAME_CRC_FROM,
  FRAME_HEADER_BYTES,
  frameOf,
  hasFrameMagic,
  RECORD_FLAGS,
  RECORD_HEADER_BYTES,
  type Frame,
  type JournalRecord,
  type StreamIdentity,
} from "../format/record.js";

/**
 * What a frame seems to have held whose checksum is wrong. That is good enough to name the streams that have lost
 * something. Nothing of it is ever served: a CRC-32 that fits after a change does not vouch for payload.
 */
export interface LikelyFrame {
  readonly frame: Frame;
  readonly records: readonly JournalRecord[];
  /** Whether these are all records that it had. */
  readonly isWhole: boolean;
  /** Whether one wrong bit explains its checksum: then it held just this. */
  readonly isCertain: boolean;
}

/** Frames one behind the other, none of them sound. */
export interface LikelyFrames {
  readonly frames: readonly LikelyFrame[];
  /** Where the last whole one ends. */
  readonly end: number;
  /** Whether all of them are whole. */
  readonly areWhole: boolean;
}

/** Reads up to `most` damaged frames of a journal file from byte `from` to `limit`, while there seem to be any. */
export function likelyFrames(
  bytes: Buffer,
  from: number,
  limit: number,
  expected: ExpectedJournal,
  most = Infinity,
): LikelyFrames {
  const frames: LikelyFrame[] = [];
  let end = from;
  while (end < limit && frames.length < most) {
    const found = likelyFrame(bytes.subarray(0, limit), end, expected);
    if (found === null) break;
    frames.push(found);
    if (!found.isWhole) return { frames, end, areWhole: false };
    end = found.frame.nextOffset;
  }
  return { frames, end, areWhole: true };
}

/** The frame that seems to be at `offset`; `null` where nothing looks like one. */
function likelyFrame(bytes: Buffer, offset: number, expected: ExpectedJournal): LikelyFrame | null {
  // A sound one is of an earlier use of the file, or of another directory.
  if (offset + FRAME_HEADER_BYTES > bytes.length || decodeFrame(bytes, offset) !== null) return null;
  for (const changed of withOneBitRight(bytes.subarray(offset))) {
    const frame = frameOf(changed, offset);
    const { records, end } = likelyRecords(frame.records);
    const isMeant = frame.sequence === expected.sequence && frame.directoryId.equals(expected.directoryId);
    if (isMeant && end === frame.records.length && records.length === frame.recordCount)
      return { frame, records, isWhole: true, isCertain: true };
  }
  const rest = frameOf(bytes.subarray(offset), offset);
  // One sign alone may be left of an older frame: a later one has overwritten the sector's first bytes.
  const signs = [
    hasFrameMagic(bytes, offset),
    rest.sequence === expected.sequence,
    rest.directoryId.equals(expected.directoryId),
  ];
  return signs.filter(Boolean).length >= 2 ? asItStands(bytes, rest) : null;
}

/** With more than one bit wrong: its records add up to its length, or to their number, or the frame is not whole. */
function asItStands(bytes: Buffer, rest: Frame): LikelyFrame {
  const length = bytes.readUInt32LE(rest.offset + 4);
  const isLengthPossible = length >= FRAME_HEADER_BYTES && rest.offset + length <= bytes.length;
  const byLength = isLengthPossible ? likelyRecords(rest.records.subarray(0, length - FRAME_HEADER_BYTES)) : null;
  if (byLength !== null && byLength.end === length - FRAME_HEADER_BYTES)
    return { frame: ended(rest, length), records: byLength.records, isWhole: true, isCertain: false };
  const byCount = likelyRecords(rest.records, rest.recordCount);
  const isWhole = rest.recordCount > 0 && byCount.records.length === rest.recordCount;
  return { frame: ended(rest, FRAME_HEADER_BYTES + byCount.end), records: byCount.records, isWhole, isCertain: false };
}

function ended(frame: Frame, length: number): Frame {
  return {
    ...frame,
    records: frame.records.subarray(0, length - FRAME_HEADER_BYTES),
    nextOffset: alignUp(frame.offset + length),
  };
}

/** What the frame at the start of `bytes` may have been when one bit is wrong, also of its length or checksum. */
function* withOneBitRight(bytes: Buffer): Generator<Buffer> {
  const written = bytes.readUInt32LE(4);
  const stored = bytes.readUInt32LE(8);
  for (const length of [written, ...Array.from({ length: 32 }, (_, bit) => (written ^ (1 << bit)) >>> 0)]) {
    if (length < FRAME_HEADER_BYTES || length > bytes.length) continue;
    const frame = bytes.subarray(0, length);
    const difference = (crc32(frame.subarray(FRAME_CRC_FROM)) ^ stored) >>> 0;
    if (difference === 0 || (length === written && isOneBit(difference))) yield frame;
    if (length !== written || difference === 0) continue;
    for (const { offset, change } of byteChanges(difference, length - FRAME_CRC_FROM)) {
      if (!isOneBit(change)) continue;
      const changed = Buffer.from(frame);
      const at = FRAME_CRC_FROM + offset;
      changed.writeUInt8(changed.readUInt8(at) ^ change, at);
      yield changed;
    }
  }
}

/** Records one behind the other, up to `most`, as far as each looks like one; `end` is where the last ends. */
function likelyRecords(
  bytes: Buffer,
  most = Infinity,
): { readonly records: readonly JournalRecord[]; readonly end: number } {
  const records: JournalRecord[] = [];
  let end = 0;
  while (records.length < most && end + RECORD_HEADER_BYTES <= bytes.length) {
    const length = bytes.readUInt32LE(end);
    if (length < RECORD_HEADER_BYTES || end + length > bytes.length) break;
    const record = likelyRecord(bytes.subarray(end, end + length));
    if (record === null) break;
    records.push(record);
    end += length;
  }
  return { records, end };
}

function likelyRecord(bytes: Buffer): JournalRecord | null {
  if ((bytes.readUInt8(5) & ~RECORD_FLAGS) !== 0 || bytes.readUInt16LE(10) !== 0) return null;
  try {
    const record = decodeRecord(bytes);
    return record.identity === null || isIdentity(record.identity) ? record : null;
  } catch {
    // Nothing vouches for these bytes: they may be anything.
    return null;
  }
}

function isIdentity({ id, name, config }: StreamIdentity): boolean {
  return (
    /^[0-9a-f]{24}$/.test(id) &&
    typeof name === "string" &&
    name !== "" &&
    typeof config.contentType === "string" &&
    config.forkedFrom !== undefined
  );
}
