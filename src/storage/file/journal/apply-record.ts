import { RecordKind } from "../format/record.js";
import type { FileStream } from "../memory/file-stream.js";
import type { Position } from "../../storage.js";
import type { JournalEntry } from "./journal-entry.js";

/** A change of a stream: a record that was read, or an entry that is written. Only appends and creates bring bytes. */
export type RecordedChange = Pick<JournalEntry, "kind" | "position" | "segmentStart" | "change" | "bypassed">;

/** A stream that records change: one in memory, or what a survey knows of one. */
export type RecordedStream = Pick<FileStream, "advance" | "touch" | "trim" | "link" | "unlink" | "softDelete">;

/** What comes of changes besides the stream's new state; what is left out needs nothing more. */
export interface Consequences<Stream, Change> {
  created?(stream: Stream): void;
  /** A create or an append. */
  appended(stream: Stream, change: Change): Promise<void> | void;
  trimmed?(stream: Stream): Promise<void> | void;
  unlinked?(stream: Stream): void;
  softDeleted?(stream: Stream): void;
  deleted?(stream: Stream): void;
}

/** Applies a change to its stream: only this knows what each kind of record does. Throws what `then` throws. */
export function applyRecord<Stream extends RecordedStream, Change extends RecordedChange>(
  stream: Stream,
  record: Change,
  batch: number,
  then: Consequences<Stream, Change>,
): Promise<void> | void {
  const { change, position, segmentStart } = record;
  switch (record.kind) {
    case RecordKind.create:
      then.created?.(stream);
      stream.advance(change, broughtBytes(record), segmentStart, batch);
      return then.appended(stream, record);
    case RecordKind.append:
      stream.advance(change, broughtBytes(record), segmentStart, batch);
      return then.appended(stream, record);
    case RecordKind.touch:
      return stream.touch(change.atMs, batch);
    case RecordKind.trim:
      stream.trim({ position, segmentStart }, batch);
      return then.trimmed?.(stream);
    case RecordKind.link:
      return stream.link(change.payload.toString(), position, batch);
    case RecordKind.unlink:
      stream.unlink(change.payload.toString(), batch);
      return then.unlinked?.(stream);
    case RecordKind.softDelete:
      stream.softDelete(batch);
      return then.softDeleted?.(stream);
    case RecordKind.delete:
      return then.deleted?.(stream);
    // A binding only names its stream. The compiler finds a kind that is forgotten here.
    case RecordKind.bind:
    case null:
      return;
    default:
      return record.kind satisfies never;
  }
}

/** Whether a record brings bytes, and so says where the stream ended before it. */
export function bringsBytes({ kind }: RecordedChange): boolean {
  return kind === RecordKind.create || kind === RecordKind.append;
}

/** Bytes that an append or a create brings. */
export function broughtBytes({ bypassed, change }: RecordedChange): number {
  return bypassed?.length ?? change.payload.length;
}

/**
 * Whether records are missing between a stream that ends at `tail` and this one. A binding says where the stream ended,
 * or a little before: it may be older than the batch that was under way.
 */
export function leavesGap(record: RecordedChange, tail: Position): boolean {
  return record.kind === RecordKind.bind ? record.position > tail : bringsBytes(record) && record.position !== tail;
}
