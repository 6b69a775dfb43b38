import type { Retry } from "../../../ops/retry.js";
import { nextTurn } from "../../../ops/turns.js";
import { DamagedStreamError, StorageBusyError } from "../../storage.js";
import { asUnreadable, newerThanJournal, readBase } from "../directory/catalog.js";
import { combineCrc32 } from "../format/crc32.js";
import { FileStream } from "../memory/file-stream.js";
import { errorCode, errorPath, isDiskFull, isPathFault } from "../disk/files.js";
import { sidecarPath, type Layout } from "../format/layout.js";
import { applyRecord, leavesGap, type Consequences } from "../journal/apply-record.js";
import {
  decodeRecordAt,
  RecordKind,
  type BypassedPayload,
  type Frame,
  type JournalRecord,
  type RecordHead,
  type StreamIdentity,
} from "../format/record.js";
import type { StreamFiles } from "../segments/stream-files.js";
import type { Sidecar } from "../format/sidecar.js";
import { StreamDirectories } from "../directory/stream-directories.js";
import { appended } from "../memory/tail-cache.js";

/** Streams opened at the same time. */
const CONCURRENCY = 8;
/** Streams that each opens in one turn: those that need nothing from the disk must not keep requests waiting. */
const BURST = 4;
/** How soon it is tried again after too many files were open, or the disk was full. */
const RETRY_MS = 100;
/** One for all streams without records; never written to. */
const NOWHERE: never[] = [];

/** A stream that was made in a batch of the journal. */
export interface CreatedStream {
  readonly name: string;
  readonly batch: number;
}

/** What the journal has of one stream. */
export class StreamRecords {
  readonly identity: StreamIdentity;
  /** The batch of the stream's creation, where the journal has that. */
  createdIn: number | null = null;
  isDeleted = false;
  /** Payload of it is in its segments, and perhaps no sidecar knows. */
  isBypassed = false;
  /** Some of its records were kept, because its files could not take them. */
  isKept = false;
  /** The stream, once it is opened. */
  stream: FileStream | null = null;
  /** Where its records are, in order: each in a frame, at an offset. */
  #frames: Frame[] = NOWHERE;
  #offsets: number[] = NOWHERE;

  constructor(identity: StreamIdentity) {
    this.identity = identity;
  }

  /** The journal has the stream's creation: all it has may be taken from there. */
  get isCreatedHere(): boolean {
    return this.createdIn !== null;
  }

  /** Notes the stream's next record, by its head. */
  note(frame: Frame, { kind, offset, isBypassed }: RecordHead): void {
    if (kind === RecordKind.create) this.createdIn = frame.batch;
    if (kind === RecordKind.delete) this.isDeleted = true;
    if (isBypassed) this.isBypassed = true;
    if (kind === RecordKind.bind) return;
    this.#frames = appended(this.#frames, frame);
    this.#offsets = appended(this.#offsets, offset);
  }

  /** Each record, with its frame's batch. */
  *records(): Generator<{ readonly record: JournalRecord; readonly batch: number }> {
    for (const [index, frame] of this.#frames.entries())
      yield { record: decodeRecordAt(frame, this.#offsets[index] ?? 0), batch: frame.batch };
  }

  /** The stream has all that its records brought. */
  applied(stream: FileStream): void {
    this.stream = stream;
    this.#frames = NOWHERE;
    this.#offsets = NOWHERE;
  }
}

/**
 * Streams that the journal goes on with and that nobody has opened since the start: each is brought to where it was
 * when it is first asked for. Doing it again does the same: positions are absolute, and a stream takes only records of
 * batches that its sidecar does not hold.
 */
export class UnopenedStreams {
  readonly #parts: StreamFiles;
  readonly #maxUnwrittenBytes: number;
  readonly #lastBatch: number;
  readonly #directories: StreamDirectories;
  readonly #waiting: Map<string, StreamRecords>;
  readonly #consequences: Consequences<FileStream, JournalRecord>;
  readonly #retry: Retry;

  /**
   * `waiting` are the streams by name; `lastBatch` is the journal's. Up to `maxUnwrittenBytes` of them wait in memory
   * for their segments.
   */
  constructor(parts: StreamFiles, maxUnwrittenBytes: number, waiting: Map<string, StreamRecords>, lastBatch: number) {
    this.#parts = parts;
    this.#maxUnwrittenBytes = maxUnwrittenBytes;
    this.#retry = parts.state.retry();
    this.#lastBatch = lastBatch;
    this.#directories = new StreamDirectories(parts);
    this.#waiting = waiting;
    this.#consequences = {
      appended: (stream, record) => this.#appended(stream, record),
      trimmed: (stream) => parts.writer.trim(stream),
    };
  }

  /** How many streams wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Whether a stream of this name waits. */
  has(name: string): boolean {
    return this.#waiting.has(name);
  }

  /** The names of those that wait; some may be opened meanwhile. */
  names(): IterableIterator<string> {
    return this.#waiting.keys();
  }

  /** The names of those that were forked from a stream of the name `source`. */
  *forksOf(source: string): Generator<string> {
    for (const [name, { identity }] of this.#waiting) if (identity.config.forkedFrom?.name === source) yield name;
  }

  /** Those whose creation the journal has. */
  *created(): Generator<CreatedStream> {
    for (const [name, { createdIn: batch }] of this.#waiting) if (batch !== null) yield { name, batch };
  }

  /**
   * Opens the stream of this name, `null` where none waits; one at a time for a name. It keeps what is wrong with it.
   * When the disk fails, the stream waits on, and the next try begins from its files.
   */
  async open(name: string): Promise<FileStream | null> {
    const records = this.#waiting.get(name);
    if (records === undefined) return null;
    const stream = await this.#openFiles(records).catch((error: unknown) =>
      barred(records.identity, this.#parts.layout, error),
    );
    try {
      await this.#apply(stream, records);
      stream.disk.recovering = false;
      if (records.isKept && stream.damage === null) await this.#prove(stream);
    } catch (error) {
      this.#parts.cache.drop(stream);
      throw error;
    }
    records.applied(stream);
    this.#waiting.delete(name);
    return stream;
  }

  async #openFiles({ identity, isCreatedHere, isBypassed }: StreamRecords): Promise<FileStream> {
    const { files, layout, trash, shards } = this.#parts;
    const directory = layout.streamDirectory(identity.name);
    if (isCreatedHere && !(await this.#directories.mayHave(directory))) {
      // A process that was killed may have removed what was there, and that may not be permanent yet.
      shards.note(directory);
      return newStream(identity, directory, null);
    }
    const read = readBase(files, identity.id, directory).catch(asUnreadable(identity.name, sidecarPath(directory)));
    const { own, isTold, isVacant, problem } = await read;
    // The journal has the whole stream: files without a sidecar are leftovers. But where large payloads went past it,
    // only they have these, and somebody has removed the sidecar: checksums of the journal say whether they are whole.
    const isAllInJournal = own === null && isCreatedHere && isVacant;
    if (isAllInJournal && !isBypassed) {
      await trash.discard(directory, `${identity.id}-leftovers`);
      return newStream(identity, directory, null);
    }
    const stream = newStream(identity, directory, own);
    if (isAllInJournal) await files.makeDirectory(directory);
    stream.disk.hasDirectory ||= isAllInJournal;
    stream.disk.hasUnsyncedSidecar = own !== null || isAllInJournal;
    stream.disk.hasNotice = isTold;
    shards.note(directory);
    if (isAllInJournal) return stream;
    if (own === null) stream.damage = damageOf(stream, problem);
    else if (own.batch > this.#lastBatch)
      stream.damage = damageOf(stream, newerThanJournal(own.batch, this.#lastBatch));
    return stream;
  }

  /** Tries whether its files take now what they could not take before, ahead of any read or append. */
  async #prove(stream: FileStream): Promise<void> {
    stream.unreserve();
    await ifRoom(this.#parts.writer.persist(stream));
  }

  async #apply(stream: FileStream, records: StreamRecords): Promise<void> {
    const { cache, writer } = this.#parts;
    for (const { record, batch } of records.records()) {
      if (stream.damage !== null) return;
      if (batch <= stream.disk.persistedBatch) continue;
      const { tail } = stream.state;
      if (leavesGap(record, tail))
        stream.damage = damageOf(
          stream,
          `the journal goes on at position ${record.position}, but the stream ends at ${tail}`,
        );
      else await applyRecord(stream, record, batch, this.#consequences);
      if (cache.unwrittenBytes > this.#maxUnwrittenBytes) await ifRoom(writer.flush(stream));
    }
  }

  #appended(stream: FileStream, { change, segmentStart, position, bypassed }: JournalRecord): Promise<void> | void {
    if (bypassed !== null) return this.#joinBypassed(stream, position, bypassed);
    // A copy: the cache must not keep the whole journal file in memory.
    if (change.payload.length > 0)
      this.#parts.cache.append(stream, segmentStart, position, Buffer.from(change.payload));
  }

  /** Writes what is before a large payload, and counts that: it was in its segment, synced, before its record was. */
  async #joinBypassed(stream: FileStream, position: number, bypassed: BypassedPayload): Promise<void> {
    const { cache, writer } = this.#parts;
    await writer.flushTo(stream, position);
    if (stream.damage !== null) return;
    // The cache holds one run without a gap, and this payload is not in it.
    cache.drop(stream);
    const segment = stream.segmentAt(position);
    stream.written = position + bypassed.length;
    if (segment === undefined) return;
    segment.crc = combineCrc32(segment.crc, bypassed.crc, bypassed.length);
    // Another process wrote it.
    segment.unchecked = { length: stream.written - segment.start, crc: segment.crc, checking: null };
  }

  /**
   * Opens all of them after the start, each by `open`, which brings it into memory: then the journal can be
   * checkpointed. False where some are left to the next start. Never rejects: what fails is a fault.
   */
  async openAll(open: (name: string) => Promise<unknown>): Promise<boolean> {
    const { state } = this.#parts;
    const names = this.names();
    const worker = async (): Promise<void> => {
      let opened = 0;
      for (const name of names) {
        while (!state.isOver && !(await this.#hasOpened(name, open))) await this.#retry.wait(RETRY_MS);
        if (state.isOver) return;
        // A journal that is full waits for the checkpoint, and that for this.
        state.syncs.progressed();
        if ((opened += 1) % BURST === 0) await nextTurn();
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    return !state.isOver;
  }

  /** False where it is to be tried again. */
  async #hasOpened(name: string, open: (name: string) => Promise<unknown>): Promise<boolean> {
    const { state } = this.#parts;
    try {
      await open(name);
    } catch (error) {
      // Whoever asks for the stream is told of that.
      if (error instanceof DamagedStreamError) return true;
      if (error instanceof StorageBusyError) {
        state.emit("blocked", error.cause instanceof Error ? error.cause : error);
        if (state.isRunning) return false;
        state.stop();
        return true;
      }
      state.fail(error);
    }
    return true;
  }
}

/** On a full disk the stream can be read all the same: what waits in memory is no more than the journal has. */
async function ifRoom(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}

/** A stream whose directory or sidecar can't be used: that is its own trouble, and a later start may be rid of it. */
function barred(identity: StreamIdentity, layout: Layout, error: unknown): FileStream {
  const stream = newStream(identity, layout.streamDirectory(identity.name), null);
  if (error instanceof DamagedStreamError) stream.damage = error;
  else if (isPathFault(error))
    stream.damage = new DamagedStreamError(
      stream.name,
      errorPath(error) ?? stream.directory,
      `it can't be used (${errorCode(error)})`,
    );
  else throw error;
  return stream;
}

function damageOf({ name, directory }: FileStream, problem: string): DamagedStreamError {
  return new DamagedStreamError(name, sidecarPath(directory), problem);
}

function newStream(identity: StreamIdentity, directory: string, sidecar: Sidecar | null): FileStream {
  const stream = new FileStream(identity, directory, sidecar?.claimed === true ? null : sidecar);
  stream.disk.hasDirectory = sidecar !== null;
  stream.disk.hasSidecar = sidecar !== null;
  stream.created = true;
  stream.disk.recovering = true;
  return stream;
}
