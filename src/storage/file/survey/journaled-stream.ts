import { join } from "node:path";
import { readBase, type SidecarBase } from "../directory/catalog.js";
import { sizeOf, type Files } from "../disk/files.js";
import type { DataDirectory } from "../directory/directory.js";
import {
  RecordKind,
  type BypassedPayload,
  type Frame,
  type JournalRecord,
  type StreamIdentity,
} from "../format/record.js";
import { indexStartOf, segmentStartOf } from "../format/layout.js";
import type { Sidecar, SidecarResult } from "../format/sidecar.js";
import { applyRecord, leavesGap, type Consequences, type RecordedStream } from "../journal/apply-record.js";
import type { Place } from "../memory/file-stream.js";
import type { AppendRecord, Position } from "../../storage.js";

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

/** A stream that the journal speaks of, as far as its records were read. */
export class JournaledStream implements RecordedStream {
  readonly identity: StreamIdentity;
  readonly directory: string;
  /** Where it ended when the journal first spoke of it; for one that was created in it, where its own bytes begin. */
  readonly firstPosition: Position;
  /** The batch of the first record of it; where that is not certain, one that is no earlier. */
  readonly firstBatch: number;
  /** All it ever was is in the journal, from its creation on. */
  readonly createdHere: boolean;
  /** Its creation is lost, with all before the first record: in a damaged part of the journal, or with its files. */
  readonly isBeginningLost: boolean;
  /** What its sidecar says, also where a notice stands in its place; `null` where there is none. */
  readonly sidecar: SidecarResult | null;
  /** Whether its directory says that it lacks records which the journal has. */
  readonly isTold: boolean;
  deleted = false;
  /** Whether nothing is appended to it any more when the journal is applied. */
  ended: boolean;
  /** Where it ends when the journal is applied. */
  tail: Position;
  /** Where it begins when the journal is applied; 0 when no trim is in it. */
  trimmedTo: Position = 0;
  /** What the journal changes in its forks, by id: where the bytes end that one needs, `null` where it is gone. */
  readonly forkChanges = new Map<string, Position | null>();
  /** Records that its sidecar does not hold yet, and that can be applied. */
  pendingRecords = 0;
  /** Where the journal goes on somewhere else than at the stream's end, `null` when it never does. */
  gap: JournalGap | null = null;
  /** It seems to have records in a damaged part of the journal that its sidecar does not hold. */
  suspect = false;
  /** The batch of its last bytes that follow what it has; 0 when the journal has none. */
  provenBatch = 0;
  readonly bypassed: BypassedPlace[] = [];

  /** `base` is what its directory says, `null` where that can't be read; `isGone` where there is nothing. */
  constructor(
    { record, identity, batch, isSound }: FirstRecord,
    directory: string,
    base: SidecarBase | null,
    isGone: boolean,
  ) {
    const own = base?.own ?? null;
    const isUnwritten = own === null || own.claimed;
    const isCreation = record.kind === RecordKind.create;
    this.identity = identity;
    this.directory = directory;
    this.firstPosition = isCreation ? (identity.config.forkedFrom?.point ?? 0) : record.position;
    this.firstBatch = batch;
    this.createdHere = isCreation && isSound;
    this.isBeginningLost = isCreation ? !isSound && isUnwritten : own?.claimed === true || isGone;
    this.sidecar = base === null ? null : sidecarOf(base);
    this.isTold = base?.isTold === true;
    this.ended = own !== null && (own.state.closed || own.softDeleted);
    this.tail = isUnwritten ? this.firstPosition : own.state.tail;
  }

  /** Goes on as recovery does: a record counts where the stream ends, unless the sidecar holds it already. */
  follow(record: JournalRecord, file: string, { batch, offset }: Frame): void {
    if (this.gap !== null || batch <= (ownSidecar(this)?.batch ?? 0)) return;
    if (leavesGap(record, this.tail)) this.gap = { file, offset, position: record.position, tail: this.tail };
    else if (record.kind !== RecordKind.bind) {
      this.pendingRecords += 1;
      void applyRecord(this, record, batch, AFTER);
    }
  }

  advance({ closes }: AppendRecord, length: number, _: Position, batch: number): void {
    this.ended ||= closes;
    this.provenBatch = batch;
    this.tail += length;
  }

  /** When it was last used is nothing that a survey tells. */
  touch(): void {}

  trim({ position }: Place): void {
    this.trimmedTo = position;
  }

  link(fork: string, neededBefore: Position): void {
    this.forkChanges.set(fork, neededBefore);
  }

  unlink(fork: string): void {
    this.forkChanges.set(fork, null);
  }

  softDelete(): void {
    this.ended = true;
  }
}

const AFTER: Consequences<JournaledStream, JournalRecord> = {
  appended: ({ bypassed: places }, { bypassed, position, segmentStart }) => {
    if (bypassed !== null) places.push({ ...bypassed, position, segmentStart });
  },
};

/** A stream as the first record says that speaks of it. */
export async function meetStream(
  { files, layout }: Pick<DataDirectory, "files" | "layout">,
  first: FirstRecord,
): Promise<JournaledStream> {
  const { record, identity } = first;
  const directory = layout.streamDirectory(identity.name);
  // One that can't be read is told of where its directory is looked at.
  const base = await readBase(files, identity.id, directory).catch(() => null);
  const hasNothing = record.kind !== RecordKind.create && (base === null || (base.own === null && base.read === null));
  return new JournaledStream(first, directory, base, hasNothing && (await holdsNothing(files, directory)));
}

/** A notice without a sidecar beside it stands for none. */
function sidecarOf({ own, read, isTold, isVacant }: SidecarBase): SidecarResult | null {
  if (own !== null) return { kind: "sound", sidecar: own };
  return isTold && isVacant ? null : read;
}

/** Whether there is no directory, or no byte in it: segments and indexes of bytes that never came hold none. */
async function holdsNothing(files: Files, directory: string): Promise<boolean> {
  try {
    for (const name of await files.list(directory)) {
      if (indexStartOf(name) !== null) continue;
      if (segmentStartOf(name) === null || (await sizeOf(files, join(directory, name))) > 0) return false;
    }
    return true;
  } catch {
    return false; // what can't be read is told of where the directory is looked at
  }
}

/** The stream's own sidecar, when it is sound. */
export function ownSidecar({ sidecar, identity }: JournaledStream): Sidecar | null {
  return sidecar?.kind === "sound" && sidecar.sidecar.id === identity.id ? sidecar.sidecar : null;
}

/**
 * Whether a later stream has its name: `created`, the last one that the journal has the creation of, or the one in the
 * directory. So it was deleted, also where that record is lost.
 */
export function isSuperseded(
  { sidecar, identity, firstBatch }: JournaledStream,
  created: JournaledStream | undefined,
): boolean {
  if (created !== undefined && created.firstBatch > firstBatch) return true;
  if (sidecar?.kind !== "sound") return false;
  const { id, claimed, batch } = sidecar.sidecar;
  return id !== identity.id && !claimed && batch > firstBatch;
}
