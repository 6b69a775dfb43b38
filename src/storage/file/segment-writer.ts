import type { Position } from "../storage.js";
import { MutableState } from "../state.js";
import { combineCrc32, crc32 } from "./crc32.js";
import type { FileStream } from "./file-stream.js";
import { isPassing, replaceFile, type Files, type OpenFile } from "./files.js";
import { segmentPath, sidecarPath, type Layout } from "./layout.js";
import type { SegmentPool } from "./segment-pool.js";
import { encodeSidecar, type Sidecar } from "./sidecar.js";
import type { TailCache } from "./tail-cache.js";

/** What a writer works with. */
export interface SegmentWriterOptions {
  readonly files: Files;
  readonly layout: Layout;
  readonly pool: SegmentPool;
  readonly cache: TailCache;
}

/**
 * Writes streams to their own files, behind the journal: bytes to segments, state to sidecars. The operations of one
 * stream run one after another.
 *
 * Order, for a sidecar never to say more than the segments hold: bytes, sync of the segments and of their entries,
 * sidecar under another name, its sync, its rename, sync of the directory. Only then may the journal forget.
 */
export class SegmentWriter {
  readonly #files: Files;
  readonly #layout: Layout;
  readonly #pool: SegmentPool;
  readonly #cache: TailCache;
  /** Directories of stream directories with entries that are not synced. */
  readonly #unsyncedShards = new Set<string>();
  #failure: Error | null = null;

  constructor(options: SegmentWriterOptions) {
    this.#files = options.files;
    this.#layout = options.layout;
    this.#pool = options.pool;
    this.#cache = options.cache;
  }

  /** Writes the stream's durable bytes to its segments. Nothing is synced. */
  flush(stream: FileStream): Promise<void> {
    return this.flushTo(stream, stream.state.tail);
  }

  /** Writes the stream's durable bytes before `limit` to its segments. Nothing is synced. */
  flushTo(stream: FileStream, limit: Position): Promise<void> {
    return this.#inOrder(stream, () => this.#flushTo(stream, limit));
  }

  /** Makes everything that is durable in the stream permanent in its own files, but for the entry of its directory. */
  persist(stream: FileStream): Promise<void> {
    return this.#inOrder(stream, () => this.#persistNow(stream));
  }

  /** Makes the entries of stream directories permanent. */
  async syncShards(): Promise<void> {
    for (const shard of [...this.#unsyncedShards]) {
      this.#unsyncedShards.delete(shard);
      try {
        await this.#files.syncDirectory(shard);
      } catch (error) {
        this.#unsyncedShards.add(shard);
        throw error;
      }
    }
  }

  /** Notes that the entry of a stream's directory changed. */
  noteShard(streamDirectory: string): void {
    this.#unsyncedShards.add(this.#layout.shard(streamDirectory));
  }

  /** Writes a payload to its place in a segment and makes it permanent there, ahead of its record in the journal. */
  bypass(stream: FileStream, segmentStart: Position, position: Position, payload: Buffer): Promise<void> {
    return this.#inOrder(stream, async () => {
      await this.#claim(stream);
      await this.#pool.use(segmentPath(stream.directory, segmentStart), "write", async (file) => {
        await this.#fit(stream, segmentStart, file);
        await file.write(payload, position - segmentStart);
        await file.sync();
      });
      await this.#enter(stream, [segmentStart]);
    });
  }

  #inOrder(stream: FileStream, run: () => Promise<void>): Promise<void> {
    const done = stream.work.then(() => this.#unlessFailed(run));
    // The next operation runs whether this one failed or not; whoever asked for this one is told.
    stream.work = done.catch(() => undefined);
    return done;
  }

  /** What the disk fails at is final: a sync that is tried again says that all is well, and brings nothing to the disk. */
  async #unlessFailed(run: () => Promise<void>): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    try {
      await run();
    } catch (error) {
      if (!isPassing(error)) this.#failure = error instanceof Error ? error : new Error(String(error));
      throw error;
    }
  }

  async #flushTo(stream: FileStream, limit: Position): Promise<void> {
    while (stream.written < limit && !stream.deleted) {
      const run = stream.cached.pendingRun(stream.written, limit);
      const segment = stream.segmentAt(run.position);
      if (segment === undefined) throw new RangeError(`no segment holds position ${run.position} of ${stream.directory}`);
      const { length } = run.bytes;
      if (run.writtenCrc === null) {
        await this.#writeRun(stream, run.segmentStart, run.position, run.bytes);
        segment.crc = crc32(run.bytes, segment.crc);
      } else {
        segment.crc = combineCrc32(segment.crc, run.writtenCrc, length);
      }
      stream.written += length;
      if (!stream.deleted) this.#cache.noteWritten(stream, length);
    }
  }

  async #writeRun(stream: FileStream, segmentStart: Position, position: Position, bytes: Buffer): Promise<void> {
    await this.#makeDirectory(stream);
    await this.#pool.use(segmentPath(stream.directory, segmentStart), "write", async (file) => {
      await this.#fit(stream, segmentStart, file);
      stream.unsynced.add(segmentStart);
      await file.write(bytes, position - segmentStart);
    });
  }

  /** Cuts off what a crash may have left behind the durable bytes: a large payload whose record was never written. */
  async #fit(stream: FileStream, segmentStart: Position, file: OpenFile): Promise<void> {
    if (stream.recovering || stream.fitted.has(segmentStart)) return;
    const segment = stream.segmentAt(segmentStart);
    const durableLength = segment !== undefined && segment.start === segmentStart ? segment.length : 0;
    // Behind the durable bytes a large payload may be whole whose record is on its way.
    const reservedLength = stream.reservedSegmentStart === segmentStart ? stream.reservedTail - segmentStart : 0;
    const keptLength = Math.max(durableLength, reservedLength);
    if ((await file.size()) > keptLength) await file.truncate(keptLength);
    stream.fitted.add(segmentStart);
  }

  async #persistNow(stream: FileStream): Promise<void> {
    if (stream.deleted || stream.damage !== null) return;
    if (stream.hasUnsyncedSidecar) {
      await this.#files.syncDirectory(stream.directory);
      stream.hasUnsyncedSidecar = false;
    }
    if (stream.isPersisted && stream.hasSidecar) return;
    // Taken now, before any wait: state and batch belong together.
    const batch = stream.lastBatch;
    const state = stream.state.clone();
    const { tail } = state;
    await this.#flushTo(stream, tail);
    if (stream.deleted) return;
    await this.#makeDirectory(stream);
    const unsynced = [...stream.unsynced];
    for (const start of unsynced) await this.#pool.use(segmentPath(stream.directory, start), "write", (file) => file.sync());
    await this.#enter(stream, unsynced);
    for (const start of unsynced) stream.unsynced.delete(start);
    const segments = stream.segments
      .filter((segment) => segment.start < tail)
      .map((segment) => ({ start: segment.start, length: Math.min(segment.length, tail - segment.start), crc: segment.crc }));
    await this.#replaceSidecar(stream, { ...identityOf(stream), state, segments, batch, claimed: false });
    stream.persistedBatch = batch;
  }

  /** Makes the directory's entries of synced segments permanent: no sidecar or record may speak of one that could be gone. */
  async #enter(stream: FileStream, segmentStarts: readonly Position[]): Promise<void> {
    const missing = segmentStarts.filter((start) => !stream.entered.has(start));
    if (missing.length === 0) return;
    await this.#files.syncDirectory(stream.directory);
    for (const start of missing) stream.entered.add(start);
  }

  /** Takes the directory for a stream whose creation may not be durable yet, so that its files can't be anyone else's. */
  async #claim(stream: FileStream): Promise<void> {
    await this.#makeDirectory(stream);
    if (!stream.hasSidecar) {
      await this.#replaceSidecar(stream, { ...identityOf(stream), state: new MutableState(), segments: [], batch: 0, claimed: true });
    }
    if (stream.hasEntry) return;
    await this.#files.syncDirectory(this.#layout.shard(stream.directory));
    stream.hasEntry = true;
  }

  async #replaceSidecar(stream: FileStream, sidecar: Sidecar): Promise<void> {
    await replaceFile(this.#files, sidecarPath(stream.directory), encodeSidecar(sidecar));
    await this.#files.syncDirectory(stream.directory);
    stream.hasSidecar = true;
  }

  async #makeDirectory(stream: FileStream): Promise<void> {
    if (stream.hasDirectory) return;
    await this.#files.makeDirectory(stream.directory);
    this.noteShard(stream.directory);
    stream.hasDirectory = true;
  }
}

function identityOf(stream: FileStream): Pick<Sidecar, "id" | "name" | "config"> {
  const { id, name, config } = stream;
  return { id, name, config };
}
