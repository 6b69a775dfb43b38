// One message of a stream's subject: its head says what changed, and the whole state after that.

import type { AppendRecord, Position, ProducerStamp, StreamConfig } from "../../storage.js";
import type { LogMessage } from "./replicated-log.js";

/** An append as a message has it: all but its bytes, which are in the body. */
export interface RecordHead extends Omit<AppendRecord, "payload"> {
  readonly length: number;
}

/** A producer's id, and the epoch, sequence and time of its last append. */
export type MarkRow = readonly [id: string, epoch: number, seq: number, atMs: number];

/** How many messages a record adds to its stream. */
export function messagesIn({ length, messages }: Pick<RecordHead, "length" | "messages">): number {
  return length > 0 ? messages : 0;
}

/** Where the marks of a stream's producers are. */
export type Producers =
  /** All of them, least recently active first. */
  | { readonly kind: "here"; readonly marks: readonly MarkRow[] }
  /** Behind the payload of this message. */
  | { readonly kind: "snapshot"; readonly bytes: number }
  /** Behind that of the message at `sequence`, and in the records of the `behind` messages since. */
  | { readonly kind: "since"; readonly sequence: number; readonly behind: number };

/** What a message says. */
export interface Change {
  /** When it was deleted; `null` while it lives. */
  readonly deletedAtMs: number | null;
  /** The incarnation of the stream. */
  readonly id: string;
  readonly name: string;
  /** New for each message, and the same when it is published again. */
  readonly publication: string;
  readonly from: Position;
  readonly to: Position;
  readonly records: readonly RecordHead[];
  readonly config: StreamConfig;
  /** Where the stream begins, and when the newest append in the first message that is kept was made. */
  readonly earliest: Position;
  readonly earliestAtMs: number;
  /** The state after the message. */
  readonly newestAtMs: number;
  readonly messages: number;
  readonly closedAtMs: number | null;
  readonly isClosed: boolean;
  readonly closedBy: ProducerStamp | null;
  readonly lastSeq: string | null;
  readonly producers: Producers;
}

/** Where the appends of a change end, ascending; those without bytes have no end of their own. */
export function endsOf({ from, records }: Pick<Change, "from" | "records">): Position[] {
  const ends: Position[] = [];
  let at = from;
  for (const { length } of records) {
    at += length;
    if (length > 0) ends.push(at);
  }
  return ends;
}

/** A change with its place in the log. */
export interface PlacedChange {
  readonly change: Change;
  readonly sequence: number;
  readonly previous: number;
  /** The payloads of its records, one behind another, then the snapshot where it has one. */
  readonly body: Buffer;
}

/** Thrown where a message is not one that this version wrote. */
export class ForeignMessageError extends Error {
  override readonly name = "ForeignMessageError";
}

const VERSION = 1;

/** What all heads of a stream say alike, as fields of JSON. */
export function fixedFieldsOf({ id, name, config }: Pick<Change, "id" | "name" | "config">): string {
  const { contentType, createdAtMs, ttlSeconds, expiresAtMs, forkedFrom } = config;
  const g = JSON.stringify([contentType, createdAtMs, ttlSeconds, expiresAtMs, forkedFrom]);
  return `"i":${JSON.stringify(id)},"m":${JSON.stringify(name)},"g":${g}`;
}

/**
 * The head of a message, in one line. It is put together here, with `fixedFields` made once for a stream: from an
 * object it costs three times as much.
 */
export function encodeChange(change: Change, fixedFields = fixedFieldsOf(change)): string {
  const { records, closedBy, lastSeq } = change;
  const firstAtMs = records[0]?.atMs ?? change.newestAtMs;
  let rows = "";
  for (const record of records) rows += `${rows === "" ? "" : ","}${encodeRecord(record, firstAtMs)}`;
  let head = `{"v":${VERSION},${fixedFields},"u":${JSON.stringify(change.publication)}`;
  head += `,"f":${change.from},"t":${change.to},"r":[${rows}],"a0":${firstAtMs},"a":${change.newestAtMs}`;
  head += `,"n":${change.messages},"e":${change.earliest},"ea":${change.earliestAtMs}`;
  head += `,${encodeProducers(change.producers)}`;
  if (change.deletedAtMs !== null) head += `,"d":${change.deletedAtMs}`;
  if (change.isClosed) head += `,"c":1`;
  if (change.closedAtMs !== null) head += `,"ca":${change.closedAtMs}`;
  if (closedBy !== null) head += `,"cb":${JSON.stringify([closedBy.id, closedBy.epoch, closedBy.seq])}`;
  if (lastSeq !== null) head += `,"q":${JSON.stringify(lastSeq)}`;
  return `${head}}`;
}

/** A record's row: what is left out at its end is absent. Its closure stands in the state: only the last can close. */
function encodeRecord({ length, atMs, messages, producer, seq }: RecordHead, firstAtMs: number): string {
  let row = `[${length},${atMs - firstAtMs},${messages}`;
  if (producer !== null) row += `,${JSON.stringify(producer.id)},${producer.epoch},${producer.seq}`;
  else if (seq !== null) row += ",null,0,0";
  if (seq !== null) row += `,${JSON.stringify(seq)}`;
  return `${row}]`;
}

function encodeProducers(producers: Producers): string {
  if (producers.kind === "snapshot") return `"sn":${producers.bytes}`;
  if (producers.kind === "since") return `"ps":[${producers.sequence},${producers.behind}]`;
  return `"p":${producers.marks.length === 0 ? "[]" : JSON.stringify(producers.marks)}`;
}

/** A message of a stream's subject. Throws {@link ForeignMessageError}. */
export function decodeChange({ head, sequence, previous, body }: LogMessage): PlacedChange {
  const fields = parseVersioned<HeadFields>(head, `message ${sequence}`);
  const { r: rows, a0: firstAtMs, c, cb, q, g, p, sn, ps } = fields;
  const [contentType, createdAtMs, ttlSeconds, expiresAtMs, forkedFrom] = g;
  const change: Change = {
    deletedAtMs: fields.d ?? null,
    id: fields.i,
    name: fields.m,
    publication: fields.u,
    from: fields.f,
    to: fields.t,
    records: rows.map((row, index) => decodeRecord(row, firstAtMs, c === 1 && index === rows.length - 1)),
    config: { contentType, createdAtMs, ttlSeconds, expiresAtMs, forkedFrom },
    earliest: fields.e,
    earliestAtMs: fields.ea,
    newestAtMs: fields.a,
    messages: fields.n,
    isClosed: c === 1,
    closedAtMs: fields.ca ?? null,
    closedBy: cb === undefined ? null : { id: cb[0], epoch: cb[1], seq: cb[2] },
    lastSeq: q ?? null,
    producers: producersOf(p, sn, ps),
  };
  return { change, sequence, previous, body };
}

/** The fields of a head as JSON has them. */
interface HeadFields {
  readonly v: number;
  readonly d?: number;
  readonly i: string;
  readonly m: string;
  readonly u: string;
  readonly f: number;
  readonly t: number;
  readonly r: readonly RecordRow[];
  readonly a0: number;
  readonly a: number;
  readonly n: number;
  readonly c?: 1;
  readonly ca?: number;
  readonly cb?: readonly [string, number, number];
  readonly q?: string;
  readonly g: readonly [string, number, number | null, number | null, StreamConfig["forkedFrom"]];
  readonly e: number;
  readonly ea: number;
  readonly p?: readonly MarkRow[];
  readonly sn?: number;
  readonly ps?: readonly [number, number];
}

type RecordRow = readonly [number, number, number, (string | null)?, number?, number?, string?];

function parseVersioned<F>(head: string, what: string): F {
  let parsed: unknown;
  try {
    parsed = JSON.parse(head);
  } catch (cause) {
    throw new ForeignMessageError(`${what} has a head that is no JSON`, { cause });
  }
  const version: unknown = typeof parsed === "object" && parsed !== null ? Reflect.get(parsed, "v") : undefined;
  if (version !== VERSION)
    throw new ForeignMessageError(`${what} is of version ${String(version)}, which this one can't read`);
  return parsed as F; // only front ends write to these subjects, all in this version
}

function decodeRecord(row: RecordRow, firstAtMs: number, closes: boolean): RecordHead {
  const [length, afterMs, messages, producerId, epoch = 0, seq = 0, streamSeq = null] = row;
  const producer = typeof producerId === "string" ? { id: producerId, epoch, seq } : null;
  return { length, messages, closes, producer, seq: streamSeq, atMs: firstAtMs + afterMs };
}

function producersOf(p: HeadFields["p"], sn: HeadFields["sn"], ps: HeadFields["ps"]): Producers {
  if (sn !== undefined) return { kind: "snapshot", bytes: sn };
  if (ps !== undefined) return { kind: "since", sequence: ps[0], behind: ps[1] };
  return { kind: "here", marks: p ?? [] };
}

/** The edge of a fork: it holds the bytes of one incarnation of its source. */
export interface Edge {
  readonly source: string;
  readonly id: string;
  readonly fork: string;
  readonly forkId: string;
  readonly atMs: number;
}

/** The head of an edge's message. */
export function encodeEdge({ source, id, fork, forkId, atMs }: Edge): string {
  return JSON.stringify({ v: VERSION, s: source, i: id, f: fork, fi: forkId, a: atMs });
}

/** The edge that a head tells of. Throws {@link ForeignMessageError}. */
export function decodeEdge(head: string): Edge {
  const fields = parseVersioned<{ s: string; i: string; f: string; fi: string; a: number }>(head, "an edge");
  return { source: fields.s, id: fields.i, fork: fields.f, forkId: fields.fi, atMs: fields.a };
}

/** The payloads of a message's records. */
export function payloadOf({ change, body }: PlacedChange): Buffer {
  const length = change.to - change.from;
  return body.length === length ? body : body.subarray(0, length);
}

/** The marks of the snapshot that a message has behind its payload. */
export function snapshotOf({ change, body }: PlacedChange): readonly MarkRow[] {
  return JSON.parse(body.toString("utf8", change.to - change.from)) as MarkRow[]; // as encodeSnapshot has written it
}

/** The marks of all producers, to stand behind a payload. */
export function encodeSnapshot(marks: readonly MarkRow[]): Buffer {
  return Buffer.from(JSON.stringify(marks));
}
