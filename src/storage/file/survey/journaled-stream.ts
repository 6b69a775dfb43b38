import { readBase, type SidecarBase } from "../directory/catalog.js";
import type { Files } from "../disk/files.js";
import type { Layout } from "../format/layout.js";
import { RecordKind, type BypassedPayload, type Frame, type JournalRecord, type StreamIdentity } from "../format/record.js";
import type { Sidecar, SidecarResult } from "../format/sidecar.js";
import type { Position } from "../../storage.js";

/** A stream that the journal speaks of. */
export interface JournaledStream {
  readonly identity: StreamIdentity;
  readonly directory: string;
  /** Where it ended when the journal first spoke of it; for one that was created in it, where its own bytes begin. */
  readonly firstPosition: Position;
  /** The batch of the first record of it; where that is not certain, one that is no earlier. */
  readonly firstBatch: number;
  /** All it ever was is in the journal, from its creation on. */
  readonly createdHere: boolean;
  /** All that it had before is lost, with its creation: that was in a damaged part of the journal, or in files that are gone. */
  readonly isBeginningLost: boolean;
  /** What its sidecar says, also where a notice stands in its place; `null` where there is none. */
  readonly sidecar: SidecarResult | null;
  /** Whether its directory says that it lacks records which the journal has. */
  readonly isTold: boolean;
  deleted: boolean;
  /** Whether nothing is appended to it any more when the journal is applied. */
  ended: boolean;
  /** Where it ends when the journal is applied. */
  tail: Position;
  /** Where it begins when the journal is applied; 0 when no trim is in it. */
  trimmedTo: Position;
  /** What the journal changes in its forks, by id: where the bytes end that one needs, `null` where it is gone. */
  readonly forkChanges: Map<string, Position | null>;
  /** Records that its sidecar does not hold yet, and that can be applied. */
  pendingRecords: number;
  /** Where the journal goes on somewhere else than at the stream's end, `null` when it never does. */
  gap: JournalGap | null;
  /** It seems to have records in a damaged part of the journal that its sidecar does not hold. */
  suspect: boolean;
  /** The batch of its last bytes that follow what it has; 0 when the journal has none. */
  provenBatch: number;
  readonly bypassed: BypassedPlace[];
}

/** Records that do not follow what the stream has. */
export interface JournalGap {
  readonly file: string;
  readonly offset: number;
  readonly position: Position;
  readonly tail: Position;
}

/** A large payload that only its segment holds. */
export interface BypassedPlace extends BypassedPayload {
  readonly position: Position;
  readonly segmentStart: Position;
}

/** The first record of a stream in the journal: its batch, or a later one, and whether a checksum vouches for it. */
export interface FirstRecord {
  readonly record: JournalRecord;
  readonly identity: StreamIdentity;
  readonly batch: number;
  readonly isSound: boolean;
}

/** A stream as the first record says that speaks of it. */
export async function meetStream({ files, layout }: { readonly files: Files; readonly layout: Layout }, { record, identity, batch, isSound }: FirstRecord): Promise<JournaledStream> {
  const directory = layout.streamDirectory(identity.name);
  // One that can't be read is told of where its directory is looked at.
  const base = await readBase(files, identity.id, directory).catch(() => null);
  const isCreation = record.kind === RecordKind.create;
  const firstPosition = isCreation ? (identity.config.forkedFrom?.point ?? 0) : record.position;
  const own = base?.own ?? null;
  return {
    identity,
    directory,
    firstPosition,
    firstBatch: batch,
    createdHere: isCreation && isSound,
    isBeginningLost: isCreation ? !isSound && (own === null || own.claimed) : own !== null ? own.claimed : (base?.read ?? null) === null && (await isEmpty(files, directory)),
    sidecar: base === null ? null : sidecarOf(base),
    isTold: base?.isTold === true,
    deleted: false,
    ended: own !== null && (own.state.closed || own.softDeleted),
    tail: own === null || own.claimed ? firstPosition : own.state.tail,
    trimmedTo: 0,
    forkChanges: new Map(),
    pendingRecords: 0,
    gap: null,
    suspect: false,
    provenBatch: 0,
    bypassed: [],
  };
}

/** A notice without a sidecar beside it is in the place of none. */
function sidecarOf({ own, read, isTold, isVacant }: SidecarBase): SidecarResult | null {
  if (own !== null) return { kind: "sound", sidecar: own };
  return isTold && isVacant ? null : read;
}

/** Whether there is nothing in a directory, or no such directory; what can't be looked at is not empty. */
function isEmpty(files: Files, directory: string): Promise<boolean> {
  // Where the directory is looked at, that is told.
  return files.list(directory).then((names) => names.length === 0, () => false);
}

/** The stream's own sidecar, when it is sound. */
export function ownSidecar({ sidecar, identity }: JournaledStream): Sidecar | null {
  return sidecar?.kind === "sound" && sidecar.sidecar.id === identity.id ? sidecar.sidecar : null;
}

/** Whether its directory is that of a later stream of the name: so it was deleted, also where that record is lost. */
export function isSuperseded({ sidecar, identity, firstBatch }: JournaledStream): boolean {
  if (sidecar?.kind !== "sound") return false;
  const { id, claimed, batch } = sidecar.sidecar;
  return id !== identity.id && !claimed && batch > firstBatch;
}

/** Whether a record brings bytes, and so says where the stream ended before it. */
export function bringsBytes({ kind }: JournalRecord): boolean {
  return kind === RecordKind.create || kind === RecordKind.append;
}

/** Bytes that a record brings. */
export function broughtBytes(record: JournalRecord): number {
  return record.bypassed?.length ?? record.change.payload.length;
}

/** Goes on as recovery does: a record counts when it begins where the stream ends. What its sidecar holds is no news. */
export function follow(stream: JournaledStream, record: JournalRecord, file: string, frame: Frame): void {
  if (stream.gap !== null || frame.batch <= (ownSidecar(stream)?.batch ?? 0)) return;
  const hasBytes = bringsBytes(record);
  // A binding tells where the stream ended then, or a little before: it may be older than the batch that was under way.
  const isBehind = record.kind === RecordKind.bind ? record.position > stream.tail : hasBytes && record.position !== stream.tail;
  if (isBehind) stream.gap = { file, offset: frame.offset, position: record.position, tail: stream.tail };
  if (isBehind || record.kind === RecordKind.bind) return;
  stream.pendingRecords += 1;
  if (record.kind === RecordKind.trim) stream.trimmedTo = record.position;
  if (record.kind === RecordKind.link) stream.forkChanges.set(record.change.payload.toString(), record.position);
  if (record.kind === RecordKind.unlink) stream.forkChanges.set(record.change.payload.toString(), null);
  if (record.kind === RecordKind.softDelete) stream.ended = true;
  if (!hasBytes) return;
  stream.ended ||= record.change.closes;
  stream.provenBatch = frame.batch;
  stream.tail += broughtBytes(record);
  if (record.bypassed !== null) stream.bypassed.push({ ...record.bypassed, position: record.position, segmentStart: record.segmentStart });
}
