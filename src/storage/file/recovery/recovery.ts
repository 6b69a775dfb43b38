import { basename, join } from "node:path";
import { Backlog, readSidecarOf, StreamRecords, type BacklogOptions } from "./backlog.js";
import { ANYBODYS } from "../segments/damage-log.js";
import type { SealedFile } from "../writing/checkpointer.js";
import { errorCode, isSystemError, readFully, readWhole } from "../disk/files.js";
import { cutOff, LOST_FRAMES, NO_FRAMES, readJournalFile, type CutOff, type ExpectedJournal } from "../journal/journal-reader.js";
import { isKeptDraft, journalSequenceOf, keptSequenceOf } from "../format/layout.js";
import { DirectoryError } from "../directory/lock.js";
import { alignUp, decodeHeads, FRAME_HEADER_BYTES, NO_FRAME, RecordKind, type Frame, type StreamIdentity } from "../format/record.js";

/** What recovery works with. */
export interface RecoveryOptions extends BacklogOptions {
  readonly directoryId: Buffer;
  /** What to take in place of the journal's files: what is left of a damaged one. */
  readonly journal?: readonly JournalSource[];
  /** With that, the last batch that the journal is known to have had. */
  readonly lastBatch?: number;
}

/** A journal file that was read by somebody who knows what in it is sound. */
export interface JournalSource {
  readonly path: string;
  readonly sequence: number;
  readonly frames: () => Promise<readonly Frame[]>;
  /** What handles stand for without a sound record that says so. */
  readonly bindings: ReadonlyMap<number, StreamIdentity>;
}

/** What recovery found. */
export interface Recovered {
  /** The streams that the journal speaks of and that exist, to be opened. */
  readonly backlog: Backlog;
  /** The journal files, oldest first; each is to be checkpointed when its streams are open. */
  readonly sealed: readonly RecoveredFile[];
  readonly nextSequence: number;
  readonly nextBatch: number;
  readonly records: number;
  readonly bytes: number;
}

/** A journal file of a process that ended. */
export interface RecoveredFile {
  readonly sequence: number;
  readonly path: string;
  /** Whether it is what was kept of one. */
  readonly isKept?: boolean;
  readonly streams: readonly StreamRecords[];
}

interface ScannedFile {
  readonly path: string;
  readonly sequence: number;
  /** By handle. */
  readonly streams: ReadonlyMap<number, StreamRecords>;
  readonly frames: number;
  readonly records: number;
  readonly bytes: number;
  readonly lastBatch: number;
  /** What shows that it was cut off, if it is the newest with frames. */
  readonly cut: CutOff | null;
  /** Where the last frame is. */
  readonly lastFrame: { readonly offset: number; readonly length: number };
}

/** Finds out what the journal holds after a crash (or a clean end), and finishes the deletions in it. */
export async function recover(options: RecoveryOptions): Promise<Recovered> {
  const known = new Map<string, StreamRecords>();
  const isStart = options.journal === undefined;
  const kept = isStart ? await scanKept(options, known) : [];
  const scanned = isStart ? await scanJournal(options, known) : await scanSources(options.journal, known);
  if (isStart) {
    await makeLastFrameLast(options, scanned);
    await removeUnused(options, scanned);
  }
  const fates = fatesOf([...kept, ...scanned], known);
  const lastBatch = scanned.reduce((highest, file) => Math.max(highest, file.lastBatch), options.lastBatch ?? 0);
  for (const identity of fates.deleted.values()) await removeDeleted(options, identity, fates);
  return {
    backlog: new Backlog(options, fates.surviving, lastBatch),
    sealed: [...kept.map((file) => ({ ...recoveredFile(file), isKept: true })), ...scanned.filter(({ frames }) => frames > 0).map(recoveredFile)],
    nextSequence: (scanned.at(-1)?.sequence ?? 0) + 1,
    nextBatch: lastBatch + 1,
    records: [...kept, ...scanned].reduce((sum, file) => sum + file.records, 0),
    bytes: [...kept, ...scanned].reduce((sum, file) => sum + file.bytes, 0),
  };
}

/**
 * When the process was killed in the middle of a sync, or the sync failed, the system may show a last frame that is not
 * on the disk, or hide one behind it that is. Both are made so, and synced, before anything is built on it.
 */
async function makeLastFrameLast({ files }: RecoveryOptions, scanned: readonly ScannedFile[]): Promise<void> {
  const last = scanned.findLast(({ frames }) => frames > 0);
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

/** Removes files that were made ready and never used: before later ones, a file without frames is one that lost them. */
async function removeUnused({ files }: RecoveryOptions, scanned: readonly ScannedFile[]): Promise<void> {
  if (scanned.every(({ frames }) => frames === 0)) return;
  for (const { path, frames } of scanned) if (frames === 0) await files.unlink(path);
}

/** Reads and checks every frame, and notes whose records are where: `known` takes the streams met, by id. */
async function scanJournal(options: RecoveryOptions, known: Map<string, StreamRecords>): Promise<ScannedFile[]> {
  const { files, layout } = options;
  const sequences = (await files.list(layout.journal)).map(journalSequenceOf).filter((sequence) => sequence !== null);
  const scanned: ScannedFile[] = [];
  let lastBatch: number | null = null;
  for (const sequence of sequences.sort((left, right) => left - right)) {
    const path = layout.journalFile(sequence);
    const { frames, cut } = await readFrames(options, path, { sequence, lastBatch });
    const file = { ...scanFrames(path, sequence, frames, NO_BINDINGS, known), cut };
    const first = scanned[0];
    // Behind a known batch, the next one's number shows what is missing.
    if (file.frames > 0 && lastBatch === null && first !== undefined) throw new DirectoryError(`journal file ${first.path} is damaged at byte 0: ${LOST_FRAMES}`);
    if (file.frames > 0) lastBatch = file.lastBatch;
    scanned.push(file);
  }
  assertWholeEnd(scanned);
  return scanned;
}

/** From its first start on a directory has a frame, and a file has the length that its frames vouch for. */
function assertWholeEnd(scanned: readonly ScannedFile[]): void {
  const [first] = scanned;
  const newest = scanned.findLast(({ frames }) => frames > 0);
  if (newest === undefined && first !== undefined) throw new DirectoryError(`journal file ${first.path} is damaged at byte 0: ${NO_FRAMES}`);
  // Where nothing but zeros was cut off, nothing is lost.
  if (newest?.cut?.mayHideFrames === true) throw new DirectoryError(`journal file ${newest.path} is damaged at byte ${newest.cut.offset}: ${newest.cut.problem}`);
}

/** Reads what was kept of older files: first of all, as it is older than what the journal has besides. */
async function scanKept(options: RecoveryOptions, known: Map<string, StreamRecords>): Promise<ScannedFile[]> {
  const { files, layout } = options;
  const names = new Set(await files.list(layout.journal));
  const scanned: ScannedFile[] = [];
  // A process that was killed may have been about to keep something: its records are where they were.
  const drafts = [...names].filter(isKeptDraft);
  for (const draft of drafts) await files.unlink(join(layout.journal, draft));
  let isChanged = drafts.length > 0;
  for (const sequence of [...names].map(keptSequenceOf).filter((kept) => kept !== null).sort((left, right) => left - right)) {
    const path = layout.keptJournalFile(sequence);
    if (!names.has(basename(layout.journalFile(sequence)))) {
      const { frames } = await readFrames(options, path, { sequence, lastBatch: null, isKept: true });
      scanned.push(scanFrames(path, sequence, frames, NO_BINDINGS, known));
      continue;
    }
    // The file itself is still there, with all that was kept of it: its checkpoint ended before it was freed.
    await files.unlink(path);
    isChanged = true;
  }
  if (isChanged) await files.syncDirectory(layout.journal);
  for (const { streams } of scanned) for (const records of streams.values()) records.isKept = true;
  return scanned;
}

async function scanSources(sources: readonly JournalSource[], known: Map<string, StreamRecords>): Promise<ScannedFile[]> {
  const scanned: ScannedFile[] = [];
  for (const { path, sequence, frames, bindings } of sources) scanned.push(scanFrames(path, sequence, await frames(), bindings, known));
  return scanned;
}

const NO_BINDINGS: JournalSource["bindings"] = new Map();

function scanFrames(path: string, sequence: number, frames: readonly Frame[], bindings: JournalSource["bindings"], known: Map<string, StreamRecords>): ScannedFile {
  const streams = new Map<number, StreamRecords>();
  let records = 0;
  let bytes = 0;
  for (const frame of frames) {
    records += frame.recordCount;
    bytes += frame.records.length;
    for (const { kind, handle, offset, identity: named, isBypassed } of decodeHeads(frame)) {
      // In the order of their first records: of two with the same name the later one counts.
      const identity = named ?? (streams.has(handle) ? undefined : bindings.get(handle));
      if (identity !== undefined) streams.set(handle, recordsOf(identity, known));
      const stream = streams.get(handle);
      if (stream === undefined) throw new DirectoryError(`journal file ${path} uses handle ${handle} without saying what it means`);
      if (kind === RecordKind.create) stream.isCreatedHere = true;
      if (kind === RecordKind.delete) stream.isDeleted = true;
      if (isBypassed) stream.isBypassed = true;
      if (kind !== RecordKind.bind) stream.note(frame, offset);
    }
  }
  return { path, sequence, streams, frames: frames.length, records, bytes, lastBatch: frames.at(-1)?.batch ?? 0, cut: null, lastFrame: placeOf(frames.at(-1)) };
}

function recordsOf(identity: StreamIdentity, known: Map<string, StreamRecords>): StreamRecords {
  let records = known.get(identity.id);
  if (records === undefined) known.set(identity.id, (records = new StreamRecords(identity)));
  return records;
}

function placeOf(frame: Frame | undefined): ScannedFile["lastFrame"] {
  if (frame === undefined) return { offset: 0, length: 0 };
  const length = FRAME_HEADER_BYTES + frame.records.length;
  return { offset: frame.nextOffset - alignUp(length), length };
}

/** Reads a file's frames. Damage is an error that names the place: the file is kept as it is. */
async function readFrames({ files, directoryId }: RecoveryOptions, path: string, expected: Omit<ExpectedJournal, "directoryId">): Promise<{ readonly frames: readonly Frame[]; readonly cut: CutOff | null }> {
  const read = await readWhole(files, path).catch((error: unknown) => {
    if (!isSystemError(error)) throw error;
    throw new DirectoryError(`journal file ${path} can't be read (${errorCode(error)})`);
  });
  const bytes = read ?? Buffer.alloc(0);
  const { frames, end, damage } = readJournalFile(bytes, { ...expected, directoryId });
  if (damage !== null) throw new DirectoryError(`journal file ${path} is damaged at byte ${damage.offset}: ${damage.problem}`);
  return { frames, cut: cutOff(bytes, frames, end, expected.sequence) };
}

interface Fates {
  /** All streams of the journal, by id. */
  readonly known: ReadonlyMap<string, StreamRecords>;
  /** Those that exist at the end, by name. */
  readonly surviving: Map<string, StreamRecords>;
  readonly deleted: ReadonlyMap<string, StreamIdentity>;
}

function fatesOf(scanned: readonly ScannedFile[], known: ReadonlyMap<string, StreamRecords>): Fates {
  const surviving = new Map<string, StreamRecords>();
  const deleted = new Map<string, StreamIdentity>();
  for (const file of scanned) {
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

/** Finishes a deletion, if the directory is still the deleted stream's. */
async function removeDeleted(options: RecoveryOptions, identity: StreamIdentity, { known, surviving }: Fates): Promise<void> {
  const directory = options.layout.streamDirectory(identity.name);
  const read = await readSidecarOf(options.files, identity.name, directory);
  const holder = surviving.get(identity.name);
  // One that has more than the journal does: its directory must not go for another's.
  const isOwned = holder !== undefined && (!holder.isCreatedHere || holder.isBypassed);
  // Without a sidecar the files are leftovers: a stream with bytes that only its segments hold has one.
  const isMeant = (id: string): boolean => id === identity.id || (identity.config.contentType === ANYBODYS && !known.has(id));
  const isTheirs = read === null || (read.kind === "sound" ? isMeant(read.sidecar.id) : !isOwned);
  if (isTheirs) await options.trash.discard(directory, identity.id);
}

function recoveredFile({ sequence, path, streams }: ScannedFile): RecoveredFile {
  return { sequence, path, streams: [...streams.values()] };
}

/** A recovered file for its checkpoint, now that its streams are open. */
export function sealedFile({ sequence, path, isKept = false, streams }: RecoveredFile): SealedFile {
  const touched = new Set(streams.map(({ stream }) => stream).filter((stream) => stream !== null));
  return { sequence, path, isKept, streams: touched, close: () => Promise.resolve() };
}
