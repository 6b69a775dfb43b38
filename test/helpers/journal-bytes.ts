import {
  encodeFrame,
  encodeIdentity,
  encodeRecord,
  recordLength,
  RecordKind,
  type RecordKindCode,
} from "../../src/storage/file/format/record.js";
import { configOf, recordOf } from "./engine.js";

/** One record of a journal file that a test makes: of the stream `id`, which is created with the first. */
export interface MadeRecord {
  readonly stream: { readonly id: string; readonly name: string };
  readonly payload?: string;
  readonly kind?: RecordKindCode;
}

/** The directory whose journal {@link journalBytes} are of. */
export const JOURNAL_DIRECTORY_ID = Buffer.from("01234567");

/** A journal file with a frame for each of these lists of records; the first frame is of batch `firstBatch`. */
export function journalBytes(sequence: number, frames: readonly (readonly MadeRecord[])[], firstBatch = 1): Buffer {
  const handles = new Map<string, number>();
  const tails = new Map<string, number>();
  const encode = ({ stream, payload = "", kind = RecordKind.append }: MadeRecord): Buffer => {
    const isNew = !handles.has(stream.id);
    const handle = handles.get(stream.id) ?? handles.size;
    const position = tails.get(stream.id) ?? 0;
    handles.set(stream.id, handle);
    tails.set(stream.id, position + payload.length);
    const identity = isNew ? encodeIdentity({ ...stream, config: configOf() }) : null;
    const change = recordOf(payload);
    const record = Buffer.alloc(recordLength(change, identity, false));
    encodeRecord(
      record,
      0,
      { kind: isNew ? RecordKind.create : kind, handle, position, segmentStart: 0, change, identity: null, bypassed: null },
      identity,
    );
    return record;
  };
  const bytes = frames.map((records, index) =>
    encodeFrame(
      { sequence, batch: firstBatch + index, directoryId: JOURNAL_DIRECTORY_ID, handles: 0, fileBytes: 0 },
      records.length,
      Buffer.concat(records.map(encode)),
    ),
  );
  return Buffer.concat(bytes);
}
