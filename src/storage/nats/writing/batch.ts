import type { AppendRecord, ProducerMark } from "../../storage.js";
import {
  encodeChange,
  encodeSnapshot,
  fixedFieldsOf,
  messagesIn,
  type Change,
  type MarkRow,
  type Producers,
} from "../log/change.js";
import type { ClusterStream } from "../memory/cluster-stream.js";
import type { MutableState } from "../../state.js";

/** Most records of a message. */
export const MAX_RECORDS = 512;
/** About how long their rows may be in its head. */
const MAX_ROWS_BYTES = 48 * 1024;
const ROW_BYTES = 48;

/** Producers that stand in every head: so many, and so long as JSON. More go to snapshots. */
const MAX_INLINE_MARKS = 32;
const MAX_INLINE_BYTES = 4096;
/** A new snapshot is due after so many messages, or a quarter as many as there are producers. */
const MIN_MESSAGES_BETWEEN = 64;

/** A message that is ready to be published. */
export interface Draft {
  readonly change: Change;
  readonly head: string;
  readonly body: Buffer;
}

/** What a message changes beside its records. */
export interface DraftOptions {
  readonly publication: string;
  readonly maxBodyBytes: number;
  /** Where it is the tombstone of the stream; else `null`. */
  readonly deletedAtMs: number | null;
  /** Where the stream begins after it; `null` for where it did. */
  readonly earliest: { readonly position: number; readonly atMs: number } | null;
}

/**
 * How many of at most {@link MAX_RECORDS} records fit into one message: at least one. Several leave room for a first
 * snapshot.
 */
export function countFitting(records: readonly AppendRecord[], maxBodyBytes: number): number {
  let bytes = 0;
  let rows = 0;
  let count = 0;
  for (const { payload, producer, seq } of records) {
    bytes += payload.length;
    rows += ROW_BYTES + jsonBytes(producer?.id) + jsonBytes(seq);
    if (count > 0 && (bytes > maxBodyBytes / 2 || rows > MAX_ROWS_BYTES)) break;
    count += 1;
  }
  return count;
}

/** At most, as JSON may write a character in six. */
function jsonBytes(text: string | null | undefined): number {
  return (text?.length ?? 0) * 6;
}

/** The message that follows the last one of a stream with these records. */
export function draftOf(stream: ClusterStream, records: readonly AppendRecord[], options: DraftOptions): Draft {
  const state = stream.state.clone();
  let messages = stream.messages;
  let newestAtMs = stream.newestAtMs ?? stream.earliestAtMs;
  for (const record of records) {
    state.apply(record, record.payload.length);
    messages += messagesIn({ length: record.payload.length, messages: record.messages });
    newestAtMs = Math.max(newestAtMs, record.atMs);
  }
  const payload = records.length === 1 ? records[0]?.payload : Buffer.concat(records.map((record) => record.payload));
  // A message without records is small, as it may have to make room: a snapshot waits for the next.
  const roomBytes = records.length === 0 ? 0 : options.maxBodyBytes - (payload?.length ?? 0);
  const { producers, snapshot } = producersOf(stream, state, roomBytes);
  const earliest = options.earliest?.position ?? stream.earliest;
  const isFirst = stream.state.tail === stream.earliest;
  const change: Change = {
    deletedAtMs: options.deletedAtMs,
    id: stream.id,
    name: stream.name,
    publication: options.publication,
    from: stream.state.tail,
    to: state.tail,
    records: records.map((record) => ({
      length: record.payload.length,
      messages: record.messages,
      closes: record.closes,
      producer: record.producer,
      seq: record.seq,
      atMs: record.atMs,
    })),
    config: stream.config,
    earliest,
    earliestAtMs: options.earliest?.atMs ?? (isFirst ? newestAtMs : stream.earliestAtMs),
    newestAtMs,
    messages,
    closedAtMs: state.closedAtMs,
    isClosed: state.closed,
    closedBy: state.closedBy,
    lastSeq: state.lastSeq,
    producers,
  };
  const body = Buffer.concat([payload ?? Buffer.alloc(0), snapshot]);
  stream.fixedFields ??= fixedFieldsOf(stream);
  return { change, head: encodeChange(change, stream.fixedFields), body };
}

const NO_SNAPSHOT = Buffer.alloc(0);
const WITHOUT_PRODUCERS = { producers: { kind: "here", marks: [] }, snapshot: NO_SNAPSHOT } as const;

/** Where the marks of producers go: into the head while they are few, else now and then behind the payload. */
function producersOf(
  { snapshot }: ClusterStream,
  { producers }: MutableState,
  roomBytes: number,
): { readonly producers: Producers; readonly snapshot: Buffer } {
  const count = producers?.size ?? 0;
  if (count === 0) return WITHOUT_PRODUCERS;
  const marks = count <= MAX_INLINE_MARKS ? rowsOf(producers) : null;
  if (marks !== null && JSON.stringify(marks).length <= MAX_INLINE_BYTES)
    return { producers: { kind: "here", marks }, snapshot: NO_SNAPSHOT };
  const isDue = snapshot === null || snapshot.behind + 1 >= Math.max(MIN_MESSAGES_BETWEEN, count / 4);
  const bytes = isDue ? encodeSnapshot(rowsOf(producers)) : NO_SNAPSHOT;
  // One that does not fit waits: until then a load reads more messages.
  const isTaken = isDue && (snapshot === null || bytes.length <= roomBytes);
  if (isTaken) return { producers: { kind: "snapshot", bytes: bytes.length }, snapshot: bytes };
  const { sequence, behind } = snapshot;
  return { producers: { kind: "since", sequence, behind: behind + 1 }, snapshot: NO_SNAPSHOT };
}

function rowsOf(producers: ReadonlyMap<string, ProducerMark> | null): readonly MarkRow[] {
  return [...(producers ?? [])].map(([id, { epoch, seq, atMs }]) => [id, epoch, seq, atMs]);
}
