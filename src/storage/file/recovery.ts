import { DamagedStreamError } from "../storage.js";
import { combineCrc32 } from "./crc32.js";
import { FileStream } from "./file-stream.js";
import { errorCode, isPathFault, readFully, readWhole, type Files } from "./files.js";
import { LOST_FRAMES, readJournalFile } from "./journal-reader.js";
import { newerThanJournal, readSidecarIn } from "./catalog.js";
import { ANYBODYS } from "./damage.js";
import { journalSequenceOf, sidecarPath, type Layout } from "./layout.js";
import { DirectoryError } from "./lock.js";
import { alignUp, decodeChanges, decodeHeads, FRAME_HEADER_BYTES, RecordKind, type Frame, type JournalRecord, type StreamIdentity } from "./record.js";
import type { SegmentWriter } from "./segment-writer.js";
import type { Sidecar, SidecarResult } from "./sidecar.js";
import { StreamDirectories } from "./stream-directories.js";
import type { TailCache } from "./tail-cache.js";
import type { Trash } from "./trash.js";
import type { SealedFile } from "./checkpoint.js";

/** What recovery works with. */
export interface RecoveryOptions {
  readonly files: Files;
  readonly layout: Layout;
  readonly directoryId: Buffer;
  readonly writer: SegmentWriter;
  readonly cache: TailCache;
  readonly trash: Trash;
  /** Bytes that may wait in memory for their segments. */
  readonly maxUnwrittenBytes: number;
  /** What to take in place of the journal's files: what is left of a damaged one. */
  readonly journal?: readonly JournalSource[];
}

/** A journal file that was read by somebody who knows what in it is sound. */
export interface JournalSource {
  readonly path: string;
  readonly sequence: number;
  readonly frames: () => Promise<readonly Frame[]>;
}

/** What recovery found. */
export interface Recovered {
  /** The streams that the journal speaks of and that exist. */
  readonly streams: ReadonlyMap<string, FileStream>;
  /** The journal files, oldest first; each is to be checkpointed. */
  readonly sealed: readonly SealedFile[];
  readonly nextSequence: number;
  readonly nextBatch: number;
  readonly records: number;
  readonly bytes: number;
}

/** Streams opened at the same time. */
const CONCURRENCY = 8;

interface ScannedFile {
  readonly path: string;
  readonly sequence: number;
  readonly identities: ReadonlyMap<number, StreamIdentity>;
  readonly created: ReadonlySet<string>;
  readonly deleted: readonly StreamIdentity[];
  /** Streams with payload in their segments that no sidecar may know. */
  readonly bypassed: ReadonlySet<string>;
  readonly frames: number;
  readonly lastBatch: number;
  /** Where the last frame is. */
  readonly lastFrame: { readonly offset: number; readonly length: number };
}

/**
 * Reads the journal after a crash (or a clean end) and brings the streams it speaks of to where they were. What it
 * holds goes into the tail cache and is written behind, as in normal running. Doing it again does the same: positions
 * are absolute, and a stream takes only records of batches that its sidecar does not hold.
 */
export async function recover(options: RecoveryOptions): Promise<Recovered> {
  const scanned = options.journal === undefined ? await scanJournal(options) : await scanSources(options.journal);
  if (options.journal === undefined) {
    await writeLastFrameAgain(options, scanned);
    await removeUnused(options, scanned);
  }
  const fates = fatesOf(scanned);
  const lastBatch = scanned.reduce((highest, file) => Math.max(highest, file.lastBatch), 0);
  for (const identity of fates.deleted.values()) await removeDeleted(options, identity, fates);
  const streams = await openStreams(options, fates, lastBatch);
  let records = 0;
  let bytes = 0;
  for (const file of scanned) {
    for (const frame of await framesOf(options, file)) {
      records += frame.recordCount;
      bytes += frame.records.length;
      await applyFrame(options, frame, (handle) => streams.get(file.identities.get(handle)?.id ?? ""));
    }
  }
  for (const stream of streams.values()) stream.recovering = false;
  return {
    streams: new Map([...streams.values()].map((stream) => [stream.name, stream])),
    sealed: scanned.filter(({ frames }) => frames > 0).map((file) => sealedFile(file, streams)),
    nextSequence: (scanned.at(-1)?.sequence ?? 0) + 1,
    nextBatch: lastBatch + 1,
    records,
    bytes,
  };
}

/**
 * When the process was killed in the middle of a sync, or the sync failed, the system may show a last frame that is not
 * on the disk. It is written again, and synced, before anything is built on it.
 */
async function writeLastFrameAgain({ files }: RecoveryOptions, scanned: readonly ScannedFile[]): Promise<void> {
  const last = scanned.findLast(({ frames }) => frames > 0);
  if (last === undefined) return;
  const file = await files.open(last.path, "log");
  try {
    const { offset, length } = last.lastFrame;
    await file.write(await readFully(file, offset, length), offset);
  } finally {
    await file.close();
  }
}

/** Removes files that were made ready and never used: before later ones, a file without frames is one that lost them. */
async function removeUnused({ files }: RecoveryOptions, scanned: readonly ScannedFile[]): Promise<void> {
  if (scanned.every(({ frames }) => frames === 0)) return;
  for (const { path, frames } of scanned) if (frames === 0) await files.unlink(path);
}

/** First reading: every frame is checked, and it is noted which streams there are and which were deleted. */
async function scanJournal(options: RecoveryOptions): Promise<ScannedFile[]> {
  const { files, layout } = options;
  const sequences = (await files.list(layout.journal)).map(journalSequenceOf).filter((sequence) => sequence !== null);
  const scanned: ScannedFile[] = [];
  let lastBatch: number | null = null;
  for (const sequence of sequences.sort((left, right) => left - right)) {
    const file = scanFrames(layout.journalFile(sequence), sequence, await readFrames(options, sequence, lastBatch));
    const first = scanned[0];
    // Behind a known batch, the next one's number shows what is missing.
    if (file.frames > 0 && lastBatch === null && first !== undefined) throw new DirectoryError(`journal file ${first.path} is damaged at byte 0: ${LOST_FRAMES}`);
    if (file.frames > 0) lastBatch = file.lastBatch;
    scanned.push(file);
  }
  return scanned;
}

async function scanSources(sources: readonly JournalSource[]): Promise<ScannedFile[]> {
  const scanned: ScannedFile[] = [];
  for (const { path, sequence, frames } of sources) scanned.push(scanFrames(path, sequence, await frames()));
  return scanned;
}

function scanFrames(path: string, sequence: number, frames: readonly Frame[]): ScannedFile {
  const identities = new Map<number, StreamIdentity>();
  const created = new Set<string>();
  const deleted: StreamIdentity[] = [];
  const bypassed = new Set<string>();
  for (const frame of frames) {
    for (const { kind, handle, identity, isBypassed } of decodeHeads(frame)) {
      if (identity !== null) identities.set(handle, identity);
      const known = identities.get(handle);
      if (known === undefined) throw new DirectoryError(`journal file ${path} uses handle ${handle} without saying what it means`);
      if (kind === RecordKind.create) created.add(known.id);
      if (kind === RecordKind.delete) deleted.push(known);
      if (isBypassed) bypassed.add(known.id);
    }
  }
  return { path, sequence, identities, created, deleted, bypassed, frames: frames.length, lastBatch: frames.at(-1)?.batch ?? 0, lastFrame: placeOf(frames.at(-1)) };
}

function placeOf(frame: Frame | undefined): ScannedFile["lastFrame"] {
  if (frame === undefined) return { offset: 0, length: 0 };
  const length = FRAME_HEADER_BYTES + frame.records.length;
  return { offset: frame.nextOffset - alignUp(length), length };
}

async function framesOf(options: RecoveryOptions, file: ScannedFile): Promise<readonly Frame[]> {
  const source = options.journal?.find(({ path }) => path === file.path);
  if (source !== undefined) return source.frames();
  return file.frames === 0 ? [] : readFrames(options, file.sequence, null);
}

/** Reads a file's frames. Damage is an error that names the place: the file is kept as it is. */
async function readFrames(options: RecoveryOptions, sequence: number, lastBatch: number | null): Promise<readonly Frame[]> {
  const path = options.layout.journalFile(sequence);
  const bytes = await readWhole(options.files, path).catch((error: unknown) => {
    if (!isPathFault(error) && errorCode(error) !== "EIO") throw error;
    throw new DirectoryError(`journal file ${path} can't be read (${errorCode(error)})`);
  });
  const { frames, damage } = readJournalFile(bytes ?? Buffer.alloc(0), { sequence, directoryId: options.directoryId, lastBatch });
  if (damage !== null) throw new DirectoryError(`journal file ${path} is damaged at byte ${damage.offset}: ${damage.problem}`);
  return frames;
}

interface Fates {
  /** Streams that exist at the end, by id. */
  readonly surviving: ReadonlyMap<string, StreamIdentity>;
  readonly deleted: ReadonlyMap<string, StreamIdentity>;
  /** Ids of streams whose creation the journal still holds: all they have may be taken from it. */
  readonly created: ReadonlySet<string>;
  /** Names of streams that have more than the journal does: their directories must not go for another's. */
  readonly owners: ReadonlySet<string>;
}

function fatesOf(scanned: readonly ScannedFile[]): Fates {
  const surviving = new Map<string, StreamIdentity>();
  const deleted = new Map<string, StreamIdentity>();
  const created = new Set<string>();
  const holders = new Map<string, StreamIdentity>();
  for (const file of scanned) {
    for (const identity of file.identities.values()) {
      surviving.set(identity.id, identity);
      // A name that another stream takes has lost the one before, also where that was deleted without being known.
      const before = holders.get(identity.name);
      if (before !== undefined && before.id !== identity.id) deleted.set(before.id, before);
      holders.set(identity.name, identity);
    }
    for (const identity of file.deleted) deleted.set(identity.id, identity);
    for (const id of file.created) created.add(id);
  }
  for (const id of deleted.keys()) surviving.delete(id);
  const hasFiles = (id: string): boolean => !created.has(id) || scanned.some(({ bypassed }) => bypassed.has(id));
  const owners = new Set([...surviving.values()].filter(({ id }) => hasFiles(id)).map(({ name }) => name));
  return { surviving, deleted, created, owners };
}

/** Finishes a deletion, if the directory is still the deleted stream's. */
async function removeDeleted(options: RecoveryOptions, identity: StreamIdentity, { surviving, deleted, owners }: Fates): Promise<void> {
  const directory = options.layout.streamDirectory(identity.name);
  const read = await readSidecarOf(options, identity.name, directory);
  // Without a sidecar the files are leftovers: a stream with bytes that only its segments hold has one.
  const isMeant = (id: string): boolean => id === identity.id || (identity.config.contentType === ANYBODYS && !surviving.has(id) && !deleted.has(id));
  const isTheirs = read === null || (read.kind === "sound" ? isMeant(read.sidecar.id) : !owners.has(identity.name));
  if (isTheirs) await options.trash.discard(directory, identity.id);
}

/** A disk that fails to read is no damage that a later start could not be rid of: this start ends here. */
async function readSidecarOf({ files }: RecoveryOptions, name: string, directory: string): Promise<SidecarResult | null> {
  try {
    return await readSidecarIn(files, directory);
  } catch (error) {
    if (errorCode(error) !== "EIO") throw error;
    throw new DirectoryError(`stream ${JSON.stringify(name)}: ${sidecarPath(directory)} can't be read (EIO)`);
  }
}

async function openStreams(options: RecoveryOptions, fates: Fates, lastBatch: number): Promise<Map<string, FileStream>> {
  const streams = new Map<string, FileStream>();
  const rest = fates.surviving.values();
  const directories = new StreamDirectories(options);
  const worker = async (): Promise<void> => {
    for (const identity of rest) {
      const directory = options.layout.streamDirectory(identity.name);
      const isNew = fates.created.has(identity.id) && !(await directories.mayHave(directory));
      streams.set(identity.id, isNew ? openNew(options, identity, directory) : await openStream(options, identity, directory, fates.created.has(identity.id), lastBatch));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return streams;
}

function openNew({ writer }: RecoveryOptions, identity: StreamIdentity, directory: string): FileStream {
  // A process that was killed may have removed what was there, and that may not be permanent yet.
  writer.noteShard(directory);
  return newStream(identity, directory, null);
}

async function openStream(options: RecoveryOptions, identity: StreamIdentity, directory: string, isCreatedHere: boolean, lastBatch: number): Promise<FileStream> {
  const { files, trash, writer } = options;
  const read = await readSidecarOf(options, identity.name, directory);
  const own = read?.kind === "sound" && read.sidecar.id === identity.id ? read.sidecar : null;
  // Files without a sidecar, or claimed by a stream that was never born, are in the way of nobody.
  const isLeftover = read === null || (read.kind === "sound" && read.sidecar.claimed);
  if (own === null && isCreatedHere && isLeftover) {
    await trash.discard(directory, `${identity.id}-leftovers`);
    return newStream(identity, directory, null);
  }
  const stream = newStream(identity, directory, own);
  stream.hasUnsyncedSidecar = own !== null;
  writer.noteShard(directory);
  if (own === null) {
    stream.damage = damageOf(stream, problemOf(read));
    // An older sidecar must not come back in the place of a damaged one, whose records in the journal are set aside.
    if (read !== null) await files.syncDirectory(directory);
  } else if (own.batch > lastBatch) stream.damage = damageOf(stream, newerThanJournal(own.batch, lastBatch));
  stream.hasNotice = read?.kind === "damaged" && (read.isNotice || read.isFinal);
  return stream;
}

function problemOf(read: SidecarResult | null): string {
  if (read === null) return "it is missing";
  return read.kind === "damaged" ? read.problem : `it is that of ${JSON.stringify(read.sidecar.name)}`;
}

function damageOf({ name, directory }: FileStream, problem: string): DamagedStreamError {
  return new DamagedStreamError(name, sidecarPath(directory), problem);
}

function newStream(identity: StreamIdentity, directory: string, sidecar: Sidecar | null): FileStream {
  const stream = new FileStream(identity, directory, sidecar?.claimed === true ? null : sidecar);
  stream.hasDirectory = sidecar !== null;
  stream.hasSidecar = sidecar !== null;
  stream.created = true;
  stream.recovering = true;
  return stream;
}

async function applyFrame(options: RecoveryOptions, frame: Frame, streamOf: (handle: number) => FileStream | undefined): Promise<void> {
  for (const record of decodeChanges(frame)) {
    const stream = streamOf(record.handle);
    if (stream === undefined || stream.damage !== null || frame.batch <= stream.persistedBatch) continue;
    await applyRecord(options, stream, record, frame.batch);
  }
  const { cache, maxUnwrittenBytes, writer } = options;
  if (cache.unwrittenBytes <= maxUnwrittenBytes) return;
  for (const record of decodeHeads(frame)) {
    const stream = streamOf(record.handle);
    if (stream !== undefined && stream.damage === null) await writer.flush(stream);
  }
}

function applyRecord(options: RecoveryOptions, stream: FileStream, record: JournalRecord, batch: number): Promise<void> | void {
  const { change, segmentStart, position } = record;
  if (record.kind === RecordKind.touch) return stream.touch(change.atMs, batch);
  if (record.kind === RecordKind.link) return stream.link(change.payload.toString(), position, batch);
  if (record.kind === RecordKind.unlink) return stream.unlink(change.payload.toString(), batch);
  if (record.kind === RecordKind.softDelete) return stream.softDelete(batch);
  if (record.kind === RecordKind.trim) {
    stream.trim({ position, segmentStart }, batch);
    return options.writer.trim(stream);
  }
  if (record.kind !== RecordKind.create && record.kind !== RecordKind.append) return;
  if (position !== stream.state.tail) {
    stream.damage = damageOf(stream, `the journal goes on at position ${position}, but the stream ends at ${stream.state.tail}`);
    return;
  }
  const { bypassed } = record;
  stream.advance(change, bypassed?.length ?? change.payload.length, segmentStart, batch);
  if (bypassed !== null) return joinBypassed(options, stream, position, bypassed);
  // A copy: the cache must not keep the whole journal file in memory.
  if (change.payload.length > 0) options.cache.append(stream, segmentStart, position, Buffer.from(change.payload));
}

/** The payload is in its segment, synced before its record was written: what comes before it is written, and it is counted in. */
async function joinBypassed(
  { writer, cache }: RecoveryOptions,
  stream: FileStream,
  position: number,
  bypassed: { readonly length: number; readonly crc: number },
): Promise<void> {
  await writer.flushTo(stream, position);
  if (stream.damage !== null) return;
  // The cache holds one run without a gap, and this payload is not in it.
  cache.drop(stream, 0);
  const segment = stream.segmentAt(position);
  stream.written = position + bypassed.length;
  if (segment === undefined) return;
  segment.crc = combineCrc32(segment.crc, bypassed.crc, bypassed.length);
  // Another process wrote it.
  segment.unchecked = { length: stream.written - segment.start, crc: segment.crc, checking: null };
}

function sealedFile(file: ScannedFile, streams: ReadonlyMap<string, FileStream>): SealedFile {
  const touched = new Set<FileStream>();
  for (const { id } of file.identities.values()) {
    const stream = streams.get(id);
    if (stream !== undefined) touched.add(stream);
  }
  return { sequence: file.sequence, path: file.path, streams: touched, close: () => Promise.resolve() };
}
