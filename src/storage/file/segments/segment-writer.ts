import { EventEmitter } from "node:events";
import { join } from "node:path";
import { DamagedStreamError, type Position } from "../../storage.js";
import type { EngineParts, EngineState } from "../disk/engine-state.js";
import { INDEX_BLOCK_BYTES } from "../format/append-index.js";
import { combineCrc32, crc32 } from "../format/crc32.js";
import type { FileStream } from "../memory/file-stream.js";
import {
  errorCode,
  errorPath,
  isPassing,
  isPathFault,
  removeFile,
  writeOrCutOff,
  type Files,
  type OpenFile,
} from "../disk/files.js";
import { IndexWriter } from "./index-writer.js";
import { indexPath, indexStartOf, segmentPath, segmentStartOf } from "../format/layout.js";
import { endOf, type Segment } from "../memory/segment.js";
import type { SegmentPool } from "./segment-pool.js";
import { SidecarWriter } from "./sidecar-writer.js";
import { Turns } from "../../../ops/turns.js";
import type { TailCache } from "../memory/tail-cache.js";
import type { UnsyncedShards } from "./unsynced-shards.js";

/** The parts that a writer brings together, and its limits. */
export interface SegmentWriterOptions {
  readonly pool: SegmentPool;
  readonly cache: TailCache;
  readonly shards: UnsyncedShards;
  /** File operations that can be under way at the same time in the whole process. */
  readonly threads: number;
  /** Indexes up to this size are in sidecars. */
  readonly maxInlineIndexBytes?: number | undefined;
}

interface WriterEvents {
  /** A stream's files can't be written: it takes nothing more, and what the journal has of it is kept. */
  damaged: [stream: FileStream, damage: DamagedStreamError];
}

/**
 * The share of the threads that streams made permanent may take, each with its own sync and its sidecar's at once: the
 * rest is left, so that no journal sync waits for a thread. More at a time cost less each, as the file system commits
 * them together.
 */
const PERSIST_SHARE = 3 / 4;
const SYNCS_AT_ONCE = 2;

/**
 * Writes streams to their own files, behind the journal: bytes to segments, state to sidecars. The operations of one
 * stream run one after another.
 *
 * Order, for a sidecar never to say more than the segments hold: bytes; sync of the segments and of their entries, and
 * meanwhile the sidecar under another name and its sync; its rename; sync of the directory. Only then may the journal
 * forget.
 */
export class SegmentWriter extends EventEmitter<WriterEvents> {
  readonly #files: Files;
  readonly #pool: SegmentPool;
  readonly #cache: TailCache;
  readonly #state: EngineState;
  readonly #persisting: Turns;
  readonly #indexes: IndexWriter;
  readonly #sidecars: SidecarWriter;
  /** Operations that are under way or wait for their turn. */
  #operations = 0;
  #onIdle: (() => void) | null = null;

  constructor(parts: EngineParts, options: SegmentWriterOptions) {
    super();
    this.#files = parts.files;
    this.#state = parts.state;
    this.#pool = options.pool;
    this.#cache = options.cache;
    this.#persisting = new Turns(Math.max(1, Math.floor((options.threads * PERSIST_SHARE) / SYNCS_AT_ONCE)));
    this.#indexes = new IndexWriter(options.pool, options.maxInlineIndexBytes);
    this.#sidecars = new SidecarWriter(parts, options.shards);
  }

  /** Writes the stream's durable bytes to its segments. Nothing is synced. */
  flush(stream: FileStream): Promise<void> {
    return this.flushTo(stream, stream.state.tail);
  }

  /** Writes the stream's durable bytes before `limit` to its segments. Nothing is synced. */
  flushTo(stream: FileStream, limit: Position): Promise<void> {
    return unlessDamaged(this.#inOrder(stream, () => this.#flushTo(stream, limit)));
  }

  /** Makes everything that is durable in the stream permanent in its own files, but for the entry of its directory. */
  persist(stream: FileStream): Promise<void> {
    return unlessDamaged(this.#inOrder(stream, () => this.#persisting.run(() => this.#persistNow(stream))));
  }

  /**
   * Tells in place of a stream's sidecar that the stream is damaged; the sidecar is kept beside it, and stays where it
   * was until it is. Rejects with a DamagedStreamError when that can't be told now.
   */
  postNotice(stream: FileStream, damage: string): Promise<void> {
    return this.#inOrder(stream, async () => {
      if (!stream.deleted) await this.#sidecars.postNotice(stream, damage);
    });
  }

  /** Removes the segments of which the stream keeps nothing. That they go is durable already. */
  trim(stream: FileStream): Promise<void> {
    return unlessDamaged(this.#inOrder(stream, () => this.#trimNow(stream)));
  }

  /**
   * Writes a payload to its place in a segment and makes it permanent there, ahead of its record in the journal.
   * Rejects with a DamagedStreamError when something else is in the segment's place.
   */
  bypass(stream: FileStream, segmentStart: Position, position: Position, payload: Buffer): Promise<void> {
    const write = async (): Promise<void> => {
      await this.#sidecars.claim(stream);
      await this.#use(stream, segmentStart, async (file) => {
        await this.#fit(stream, segmentStart, file);
        await writeOrCutOff(file, payload, position - segmentStart);
        await file.sync();
      });
      await this.#enter(stream, [segmentStart], []);
    };
    // Also what it waits for in the stream's order is the disk's.
    return this.#state.syncs.large(payload.length, () => this.#inOrder(stream, write));
  }

  /** Resolves once no operation is left: the next owner of the directory must not meet one. */
  async idle(): Promise<void> {
    while (this.#operations > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  #ended(): void {
    this.#operations -= 1;
    if (this.#operations === 0) this.#onIdle?.();
  }

  #inOrder(stream: FileStream, run: () => Promise<void>): Promise<void> {
    this.#operations += 1;
    const done = stream.disk.work
      .then(() => this.#unlessFailed(stream, run))
      .catch((error: unknown) => {
        if (error instanceof DamagedStreamError && stream.damage === null) {
          stream.damage = error;
          this.emit("damaged", stream, error);
        }
        throw error;
      });
    // The next operation runs whether this one failed or not; whoever asked for this one is told.
    const ended = (): void => this.#ended();
    stream.disk.work = done.then(ended, ended);
    return done;
  }

  /** A fault of the disk is final: a sync tried again says that all is well, and brings nothing to the disk. */
  async #unlessFailed(stream: FileStream, run: () => Promise<void>): Promise<void> {
    if (stream.disk.vacancy !== null) await stream.disk.vacancy;
    stream.disk.vacancy = null;
    this.#assertWorks();
    try {
      await run();
    } catch (thrown) {
      const error = ownTrouble(stream, thrown);
      const isOne = error instanceof DamagedStreamError;
      if (!isPassing(error) && !isOne) this.#state.fail(error);
      throw error;
    }
  }

  #assertWorks(): void {
    if (this.#state.failure !== null) throw this.#state.failure;
  }

  async #flushTo(stream: FileStream, limit: Position): Promise<void> {
    while (stream.written < limit && !stream.deleted && stream.damage === null) {
      const run = stream.cached.pendingRun(stream.written, limit);
      const segment = stream.segmentAt(run.position);
      if (segment === undefined)
        throw new RangeError(`no segment holds position ${run.position} of ${stream.directory}`);
      const { length } = run.bytes;
      if (run.writtenCrc === null) {
        await this.#writeRun(stream, run.segmentStart, run.position, run.bytes);
        segment.crc = crc32(run.bytes, segment.crc);
      } else {
        segment.crc = combineCrc32(segment.crc, run.writtenCrc, length);
      }
      stream.written += length;
      if (!stream.deleted) this.#cache.noteWritten(stream, length);
      const { index } = segment;
      if (index !== null && index.length - index.written >= INDEX_BLOCK_BYTES)
        await this.#indexes.flush(stream, segment.start, index, index.length);
    }
  }

  async #writeRun(stream: FileStream, segmentStart: Position, position: Position, bytes: Buffer): Promise<void> {
    await this.#sidecars.makeDirectory(stream);
    await this.#use(stream, segmentStart, async (file) => {
      await this.#fit(stream, segmentStart, file);
      stream.disk.unsynced.add(segmentStart);
      stream.disk.unsyncedBytes += bytes.length;
      await file.write(bytes, position - segmentStart);
    });
    this.#state.syncs.progressed();
  }

  /**
   * Cuts off what a crash may have left behind the durable bytes: a large payload whose record was never written. No
   * reader would ever see it, since a byte counts only after it was written again; but the file is to hold the stream's
   * bytes and nothing else, for who reads it by itself and for a repair that has lost the sidecar.
   */
  async #fit(stream: FileStream, segmentStart: Position, file: OpenFile): Promise<void> {
    if (stream.disk.recovering || stream.disk.fitted.has(segmentStart)) return;
    const segment = stream.segmentAt(segmentStart);
    const durableLength = segment !== undefined && segment.start === segmentStart ? segment.length : 0;
    // Behind the durable bytes a large payload may be whole whose record is on its way.
    const reservedLength = stream.reservedSegment.start === segmentStart ? stream.reservedTail - segmentStart : 0;
    const keptLength = Math.max(durableLength, reservedLength);
    const isLonger = (await file.size()) > keptLength;
    // Where a sync of the journal failed, the record may be there all the same: the next start needs its payload.
    this.#assertWorks();
    if (isLonger) await file.truncate(keptLength);
    stream.disk.fitted.add(segmentStart);
  }

  async #trimNow(stream: FileStream): Promise<void> {
    if (!stream.hasExcess) return;
    for (const segment of stream.segments.filter((candidate) => endOf(candidate) <= stream.earliest)) {
      if (stream.deleted) return;
      this.#cache.dropBefore(stream, endOf(segment));
      stream.written = Math.max(stream.written, endOf(segment));
      await this.#remove(segmentPath(stream.directory, segment.start));
      if ((segment.index?.written ?? 0) > 0) await this.#remove(indexPath(stream.directory, segment.start));
      stream.forgetSegment(segment);
    }
    await this.#removeLeftovers(stream);
  }

  /** Files that crashes left: of large payloads without a record, and of what was dropped and came back. */
  async #removeLeftovers(stream: FileStream): Promise<void> {
    for (const file of await this.#files.list(stream.directory)) {
      const start = segmentStartOf(file) ?? indexStartOf(file);
      if (stream.deleted) return;
      if (start !== null && start < stream.earliest) await this.#remove(join(stream.directory, file));
    }
  }

  async #remove(path: string): Promise<void> {
    await this.#pool.drop(path);
    await removeFile(this.#files, path);
    this.#state.syncs.progressed();
  }

  async #persistNow(stream: FileStream): Promise<void> {
    if (stream.deleted || stream.damage !== null) return;
    if (stream.disk.hasUnsyncedSidecar) {
      if (stream.earliest > 0) await this.#removeLeftovers(stream);
      if (!stream.disk.hasNotice) await this.#sidecars.removeLeft(stream);
      await this.#files.syncDirectory(stream.directory);
      stream.disk.hasUnsyncedSidecar = false;
    }
    // When the journal forgets the trim, the files are gone, also where it became durable just now.
    while (stream.hasExcess && !stream.deleted) await this.#trimNow(stream);
    if (stream.deleted || (stream.isPersisted && stream.disk.hasSidecar)) return;
    // Taken now, before any wait: state and batch belong together.
    const batch = stream.lastBatch;
    const state = stream.state.clone();
    const { id, name, config, earliestPlace: earliest } = stream;
    const { softDeleted } = stream.ties;
    const forks = stream.ties.forks === null ? null : new Map(stream.ties.forks);
    const { tail } = state;
    const marked = this.#indexes.marksOf(stream);
    await this.#sidecars.makeDirectory(stream);
    const indexes = await this.#indexes.flushAll(stream, marked);
    this.#state.syncs.progressed();
    await this.#flushTo(stream, tail);
    if (stream.deleted || stream.damage !== null) return;
    const segments = stream.segments
      .filter((segment) => segment.start < tail)
      .map(({ start, length, crc, firstAtMs, newestAtMs }) => ({
        start,
        length: Math.min(length, tail - start),
        crc,
        firstAtMs,
        newestAtMs,
        index: indexes.get(start) ?? null,
      }));
    // Each member by name: objects made by spreading leave garbage that only a full collection finds.
    const sidecar = { id, name, config, state, earliest, forks, softDeleted, segments, batch, claimed: false };
    // Under its other name the sidecar promises nothing yet: both go to the disk at the same time.
    await allDone([this.#syncSegments(stream), this.#sidecars.write(stream, sidecar)]);
    this.#state.syncs.progressed();
    if (stream.deleted || stream.damage !== null) return;
    await this.#sidecars.put(stream);
    stream.disk.persistedBatch = batch;
  }

  /** Makes the bytes written to segments permanent, and the directory's entries of these. */
  async #syncSegments(stream: FileStream): Promise<void> {
    const unsynced = [...stream.disk.unsynced];
    const { syncs } = this.#state;
    for (const start of unsynced)
      await syncs.bringing(stream.disk.unsyncedBytes, () => this.#use(stream, start, (file) => file.sync()));
    stream.disk.unsyncedBytes = 0;
    const indexed = await this.#indexes.sync(stream);
    syncs.progressed();
    await this.#enter(stream, unsynced, indexed);
    for (const start of unsynced) stream.disk.unsynced.delete(start);
    for (const { index } of indexed) if (index !== null) index.isUnsynced = false;
  }

  /** Makes synced segments' directory entries permanent: no sidecar or record may speak of one that could be gone. */
  async #enter(stream: FileStream, segmentStarts: readonly Position[], indexed: readonly Segment[]): Promise<void> {
    const missing = segmentStarts.filter((start) => !stream.disk.entered.has(start));
    if (missing.length === 0 && indexed.every(({ index }) => index?.isEntered === true)) return;
    await this.#files.syncDirectory(stream.directory);
    for (const start of missing) stream.disk.entered.add(start);
    for (const { index } of indexed) if (index !== null) index.isEntered = true;
  }

  async #use(stream: FileStream, segmentStart: Position, work: (file: OpenFile) => Promise<void>): Promise<void> {
    await this.#pool.use(segmentPath(stream.directory, segmentStart), "write", work);
    this.#state.syncs.answered();
  }
}

/** Something else in the place of a stream's file, or no right to it, is the stream's trouble, not the disk's. */
function ownTrouble(stream: FileStream, error: unknown): unknown {
  // What is missing can be made, unless the stream's directory is gone.
  if (!isPathFault(error) && errorCode(error) !== "ENOENT") return error;
  return new DamagedStreamError(
    stream.name,
    errorPath(error) ?? stream.directory,
    `it can't be written (${errorCode(error)})`,
  );
}

/** Damage is no failure here: whoever was told of it has acted. */
async function unlessDamaged(work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof DamagedStreamError)) throw error;
  });
}

/** Waits for all of `work`, also when some fails: the next operation must not begin while this one goes on. */
async function allDone(work: readonly Promise<void>[]): Promise<void> {
  const failures = (await Promise.allSettled(work)).flatMap((ended): unknown[] =>
    ended.status === "rejected" ? [ended.reason] : [],
  );
  // What passes, or is one stream's trouble, would hide what is neither.
  if (failures.length > 0)
    throw (
      failures.find((error) => !isPassing(error) && !isPathFault(error)) ??
      failures.find((error) => !isPassing(error)) ??
      failures[0]
    );
}
