import { basename, join } from "node:path";
import { StreamRecords, UnopenedStreams } from "./unopened-streams.js";
import { readSidecarIn } from "../directory/catalog.js";
import { ANYBODYS } from "../segments/damage-log.js";
import type { StreamFiles } from "../segments/stream-files.js";
import type { SealedFile } from "../writing/checkpointer.js";
import { errorCode, isPassing, isSystemError, readFully } from "../disk/files.js";
import { scanJournal, understood, type ListedFile } from "../journal/journal-scanner.js";
import { isKeptDraft, keptSequenceOf, sidecarPath } from "../format/layout.js";
import { DirectoryError } from "../directory/lock.js";
import {
  alignUp,
  decodeHeads,
  FRAME_HEADER_BYTES,
  NO_FRAME,
  type Frame,
  type StreamIdentity,
} from "../format/record.js";

/** The directory that is recovered, and what its streams are opened with. */
export interface RecoveryOptions extends StreamFiles {
  readonly directoryId: Buffer;
  /** Bytes that may wait in memory for their segments. */
  readonly maxUnwrittenBytes: number;
  /** What to take in place of the journal's files: what is left of a damaged one. */
  readonly journal?: readonly SoundJournalFile[];
  /** With that, the last batch that the journal is known to have had. */
  readonly lastBatch?: number;
}

/** A journal file that was read by somebody who knows what in it is sound. */
export interface SoundJournalFile {
  readonly path: string;
  readonly sequence: number;
  readonly frames: () => Promise<readonly Frame[]>;
  /** What handles stand for without a sound record that says so. */
  readonly bindings: ReadonlyMap<number, StreamIdentity>;
}

/** What recovery found. */
export interface Recovered {
  /** The streams that the journal speaks of and that exist. */
  readonly unopened: UnopenedStreams;
  /** The journal files, oldest first; each is to be checkpointed when its streams are open. */
  readonly sealed: readonly RecoveredFile[];
  readonly nextSequence: number;
  /** The oldest batch that the journal still has; it has all from there on. */
  readonly firstBatch: number;
  readonly lastBatch: number;
  /** The batch of the next frame; the last one again where the newest file has only its empty first frame. */
  readonly nextBatch: number;
  readonly records: number;
  readonly bytes: number;
}

/** A journal file of a process that ended, with its records noted. */
export interface RecoveredFile {
  readonly path: string;
  readonly sequence: number;
  /** Whether it is what was kept of one. */
  readonly isKept: boolean;
  /** By handle. */
  readonly streams: ReadonlyMap<number, StreamRecords>;
  readonly frames: number;
  readonly records: number;
  readonly bytes: number;
  readonly firstBatch: number;
  readonly lastBatch: number;
  /** Where the last frame is. */
  readonly lastFrame: { readonly offset: number; readonly length: number };
}

/** Finds out what the journal holds after a crash (or a clean end), and finishes the deletions in it. */
export async function recover(options: RecoveryOptions): Promise<Recovered> {
  const known = new Map<string, StreamRecords>();
  const isStart = options.journal === undefined;
  if (isStart) await removeLeftovers(options);
  const noted = await noteJournal(options, known);
  const own = noted.filter(({ isKept }) => !isKept);
  if (isStart) {
    await makeLastFrameLast(options, own);
    await removeUnused(options, own);
  }
  const fates = fatesOf(noted, known);
  const lastBatch = own.reduce((highest, file) => Math.max(highest, file.lastBatch), options.lastBatch ?? 0);
  const used = own.filter(({ frames }) => frames > 0);
  const unwritten = unwrittenFile(used);
  await removeAllDeleted(options, fates);
  return {
    unopened: new UnopenedStreams(options, options.maxUnwrittenBytes, fates.surviving, lastBatch),
    sealed: noted.filter((file) => file.frames > 0 && file !== unwritten),
    nextSequence: unwritten?.sequence ?? (own.at(-1)?.sequence ?? 0) + 1,
    firstBatch: used[0]?.firstBatch ?? lastBatch + 1,
    lastBatch,
    nextBatch: unwritten?.lastBatch ?? lastBatch + 1,
    records: noted.reduce((sum, file) => sum + file.records, 0),
    bytes: noted.reduce((sum, file) => sum + file.bytes, 0),
  };
}

/** Removes drafts of kept records, and kept records of a file that is still there: they are in that, too. */
async function removeLeftovers({ files, layout }: RecoveryOptions): Promise<void> {
  const names = await files.list(layout.journal);
  const leftovers = names.filter((name) => {
    const sequence = keptSequenceOf(name);
    return isKeptDraft(name) || (sequence !== null && names.includes(basename(layout.journalFile(sequence))));
  });
  for (const name of leftovers) await files.unlink(join(layout.journal, name));
  if (leftovers.length > 0) await files.syncDirectory(layout.journal);
}

/**
 * After a kill in the middle of a sync, or a failed one, the system may show a last frame that is not on the disk, or
 * hide a frame after it that is. Writes the last one again, and its end, before anything relies on it.
 */
async function makeLastFrameLast({ files }: RecoveryOptions, noted: readonly RecoveredFile[]): Promise<void> {
  const last = noted.findLast(({ frames }) => frames > 0);
  if (last === undefined) return;
  const file = await files.open(last.path, "log");
  try {
    const { offset, length } = last.lastFrame;
    await file.write(await readFully(file, offset, length), offset);
    const end = alignUp(offset + length);
    if (end < (await file.size())) await file.write(NO_FRAME, end);
  } finally {
    await file.close();
  }
}

/** Removes files that were never used: before later ones they would look like files that lost their frames. */
async function removeUnused({ files }: RecoveryOptions, noted: readonly RecoveredFile[]): Promise<void> {
  if (noted.every(({ frames }) => frames === 0)) return;
  for (const { path, frames } of noted) if (frames === 0) await files.unlink(path);
}

/**
 * The newest file, where an older one has frames and it has no more than an empty one: the journal goes on in it, with
 * that frame again. Starts that end before their first checkpoint would leave a file each. `null` where it has more.
 */
function unwrittenFile(used: readonly RecoveredFile[]): RecoveredFile | null {
  const last = used.at(-1);
  return used.length > 1 && last?.records === 0 && last.frames === 1 ? last : null;
}

/** Reads and checks every frame, and notes whose records are where: `known` takes the streams met, by id. */
async function noteJournal(options: RecoveryOptions, known: Map<string, StreamRecords>): Promise<RecoveredFile[]> {
  const noted: RecoveredFile[] = [];
  for (const file of options.journal ?? [])
    noted.push(noteRecords({ ...file, standing: "next", frames: await file.frames() }, known));
  if (options.journal !== undefined) return noted;
  for await (const { file, frames } of scanJournal(options, "strict"))
    noted.push(noteRecords({ ...file, frames, bindings: NO_BINDINGS }, known));
  return noted;
}

const NO_BINDINGS: SoundJournalFile["bindings"] = new Map();

/** Only heads are read: whole records are, and applied, when their streams are opened. */
function noteRecords(
  file: ListedFile & Pick<SoundJournalFile, "bindings"> & { readonly frames: readonly Frame[] },
  known: Map<string, StreamRecords>,
): RecoveredFile {
  const { path, sequence, frames, bindings } = file;
  const isKept = file.standing === "kept";
  const streams = new Map<number, StreamRecords>();
  for (const frame of frames) {
    for (const head of understood(path, frame, decodeHeads(frame))) {
      const { handle } = head;
      // In the order of their first records: of two with the same name the later one counts.
      const identity = head.identity ?? (streams.has(handle) ? undefined : bindings.get(handle));
      if (identity !== undefined) streams.set(handle, recordsOf(identity, known));
      const stream = streams.get(handle);
      if (stream === undefined)
        throw new DirectoryError(`journal file ${path} uses handle ${handle} without saying what it means`);
      stream.note(frame, head);
      stream.isKept ||= isKept;
    }
  }
  const records = frames.reduce((sum, { recordCount }) => sum + recordCount, 0);
  const bytes = frames.reduce((sum, frame) => sum + frame.records.length, 0);
  const last = frames.at(-1);
  const firstBatch = frames[0]?.batch ?? 0;
  const end = { lastBatch: last?.batch ?? 0, lastFrame: placeOf(last) };
  return { path, sequence, isKept, streams, frames: frames.length, records, bytes, firstBatch, ...end };
}

function recordsOf(identity: StreamIdentity, known: Map<string, StreamRecords>): StreamRecords {
  const records = known.get(identity.id) ?? new StreamRecords(identity);
  known.set(identity.id, records);
  return records;
}

function placeOf(frame: Frame | undefined): RecoveredFile["lastFrame"] {
  if (frame === undefined) return { offset: 0, length: 0 };
  const length = FRAME_HEADER_BYTES + frame.records.length;
  return { offset: frame.nextOffset - alignUp(length), length };
}

interface Fates {
  /** All streams of the journal, by id. */
  readonly known: ReadonlyMap<string, StreamRecords>;
  /** Those that exist at the end, by name. */
  readonly surviving: Map<string, StreamRecords>;
  readonly deleted: ReadonlyMap<string, StreamIdentity>;
}

function fatesOf(noted: readonly RecoveredFile[], known: ReadonlyMap<string, StreamRecords>): Fates {
  const surviving = new Map<string, StreamRecords>();
  const deleted = new Map<string, StreamIdentity>();
  for (const file of noted) {
    for (const records of file.streams.values()) {
      const { identity } = records;
      // A name that another stream takes has lost the one before, also where that was deleted without being known.
      const before = surviving.get(identity.name)?.identity;
      if (before !== undefined && before !== identity) deleted.set(before.id, before);
      if (before !== identity) surviving.set(identity.name, records);
      if (records.isDeleted) deleted.set(identity.id, identity);
    }
  }
  for (const { id, name } of deleted.values()) if (surviving.get(name)?.identity.id === id) surviving.delete(name);
  return { known, surviving, deleted };
}

/** Finishes the deletions. Of thousands most have no directory, or never had one: a list of each shard tells. */
async function removeAllDeleted(options: RecoveryOptions, fates: Fates): Promise<void> {
  const { layout, trash } = options;
  const byShard = new Map<string, [directory: string, identity: StreamIdentity][]>();
  for (const identity of fates.deleted.values()) {
    const directory = layout.streamDirectory(identity.name);
    const shard = layout.shard(directory);
    const deleted = byShard.get(shard) ?? [];
    byShard.set(shard, deleted);
    deleted.push([directory, identity]);
  }
  for (const [shard, deleted] of byShard) {
    const names = await namesIn(options, shard);
    for (const [directory, identity] of deleted) {
      if (names?.has(basename(directory)) === false) trash.gone(directory);
      else await removeDeleted(options, identity, fates);
    }
  }
}

/** The names in a directory of stream directories; `null` where it can't be read: then each is looked at by itself. */
async function namesIn({ files }: RecoveryOptions, shard: string): Promise<ReadonlySet<string> | null> {
  try {
    return new Set(await files.list(shard));
  } catch (error) {
    if (!isSystemError(error) || isPassing(error)) throw error;
    return errorCode(error) === "ENOENT" ? new Set() : null;
  }
}

/** Finishes a deletion, if the directory is still the deleted stream's. */
async function removeDeleted(
  options: RecoveryOptions,
  identity: StreamIdentity,
  { known, surviving }: Fates,
): Promise<void> {
  const directory = options.layout.streamDirectory(identity.name);
  const read = await readSidecarIn(options.files, directory).catch((error: unknown) => {
    if (!isSystemError(error) || isPassing(error)) throw error;
    const problem = `it can't be read (${errorCode(error)})`;
    // The journal of a start is whole: what has come behind the deletion is in it. That of a repair need not be.
    if (options.journal === undefined) return { kind: "damaged", problem } as const;
    throw new DirectoryError(`stream ${JSON.stringify(identity.name)}: ${sidecarPath(directory)}: ${problem}`);
  });
  const holder = surviving.get(identity.name);
  // The name's present stream has more than the journal: its directory stays.
  const isOwned = holder !== undefined && (!holder.isCreatedHere || holder.isBypassed);
  const isMeant = (id: string): boolean =>
    id === identity.id || (identity.config.contentType === ANYBODYS && !known.has(id));
  // Without a sidecar the files are leftovers, or those of the present stream, whose sidecar somebody has removed.
  const isTheirs = read?.kind === "sound" ? isMeant(read.sidecar.id) : !isOwned;
  if (isTheirs) await options.trash.discard(directory, identity.id, { mayBeMissing: true });
}

/** A recovered file for its checkpoint, now that its streams are open. */
export function sealedFile({ sequence, path, isKept, streams }: RecoveredFile): SealedFile {
  const touched = new Set([...streams.values()].map(({ stream }) => stream).filter((stream) => stream !== null));
  return { sequence, path, isKept, streams: touched, close: () => Promise.resolve() };
}
