import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Clock } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import type { AppendRecord, ListedStream, MaybePromise, Position, Rejection, Settlement, Storage, StorageHealth, StoredStream, StreamConfig, StreamObserver } from "../storage.js";
import { DamagedStreamError, StorageBusyError } from "../storage.js";
import { listStreams, readSidecar } from "./catalog.js";
import { Checkpointer, type SealedFile } from "./checkpoint.js";
import { explainUnusable, prepareDirectory, writeMarker } from "./directory.js";
import { FileStream, ownStream } from "./file-stream.js";
import { isBusy, isPassing, systemFiles, type Files } from "./files.js";
import { emptyChange } from "./frame-encoder.js";
import { Intake } from "./intake.js";
import { Journal } from "./journal.js";
import type { JournalEntry } from "./journal-entry.js";
import { Layout } from "./layout.js";
import { DirectoryError, processStart, takeLock, thisProcess } from "./lock.js";
import { RecordKind } from "./record.js";
import { recover, type Recovered } from "./recovery.js";
import { SegmentPool } from "./segment-pool.js";
import { readThrough } from "./segment-reader.js";
import { SegmentWriter } from "./segment-writer.js";
import { TailCache } from "./tail-cache.js";
import { Trash } from "./trash.js";

/** What the engine needs. Sizes in bytes. */
export interface FileStorageOptions {
  readonly dir: string;
  /** Whether a change is settled only when it is on disk. */
  readonly fsync: boolean;
  readonly segmentBytes: number;
  readonly journalBytes: number;
  /** An append of this size goes to its segment first; at most a quarter of `journalBytes` counts. */
  readonly journalBypassBytes: number;
  readonly tailCacheBytes: number;
  readonly clock: Clock;
  readonly log: Log;
  /** The disk failed: nothing is accepted any more, and the process should end for a clean recovery. */
  readonly onFault: (error: Error) => void;
  /** The file system; the real one when absent. */
  readonly files?: Files;
}

const STREAM_ID_BYTES = 12;

/** Keeps streams in a directory: a shared journal in front, segments and sidecars behind it. */
export class FileStorage implements Storage {
  readonly #options: FileStorageOptions;
  readonly #files: Files;
  readonly #layout: Layout;
  readonly #pool: SegmentPool;
  readonly #cache: TailCache;
  readonly #writer: SegmentWriter;
  readonly #trash: Trash;
  readonly #checkpointer: Checkpointer;
  readonly #intake: Intake;
  readonly #flushAtBytes: number;
  readonly #streams = new Map<string, FileStream>();
  /** Streams with bytes that no segment has yet, oldest first. */
  readonly #unwritten = new Set<FileStream>();
  readonly #observersToSettle = new Set<StreamObserver>();
  #flushing = false;
  #journal: Journal | null = null;
  #unlock: (() => Promise<void>) | null = null;
  #faulted: Error | null = null;

  constructor(options: FileStorageOptions) {
    this.#options = options;
    const { clock, log } = options;
    const files = (this.#files = options.files ?? systemFiles(options.fsync));
    const layout = (this.#layout = new Layout(options.dir));
    const pool = (this.#pool = new SegmentPool(files));
    this.#cache = new TailCache(options.tailCacheBytes);
    this.#trash = new Trash({ files, layout, pool, log, fault: (error) => this.#fault(error), noteShard: (directory) => this.#writer.noteShard(directory) });
    this.#writer = new SegmentWriter({ files, layout, pool, cache: this.#cache });
    this.#checkpointer = new Checkpointer({
      files,
      writer: this.#writer,
      trash: this.#trash,
      journal: () => this.#openJournal(),
      journalDirectory: layout.journal,
      damagedDirectory: join(layout.root, "damaged"),
      clock,
      log,
      fault: (error) => this.#fault(error),
    });
    this.#intake = new Intake({
      journal: () => this.#openJournal(),
      writer: this.#writer,
      cache: this.#cache,
      segmentBytes: options.segmentBytes,
      bypassBytes: Math.min(options.journalBypassBytes, Math.floor(options.journalBytes / 4)),
      tailCacheBytes: options.tailCacheBytes,
      fault: (error) => this.#fault(error),
    });
    this.#flushAtBytes = Math.floor(options.tailCacheBytes / 2);
  }

  async open(): Promise<void> {
    try {
      await this.#files.makeDirectory(this.#layout.root);
      const self = await thisProcess(this.#files);
      const files = this.#files;
      this.#unlock = await takeLock({ files, path: this.#layout.lock, self, startedAtOf: (pid) => processStart(files, pid) });
      await this.#recoverAndStart();
    } catch (error) {
      await this.#unlock?.();
      this.#unlock = null;
      throw explainUnusable(this.#layout.root, error);
    }
  }

  async #recoverAndStart(): Promise<void> {
    const startedMs = this.#options.clock.nowMs();
    const files = this.#files;
    const layout = this.#layout;
    const { id, isNew } = await prepareDirectory(files, layout);
    const written = { writer: this.#writer, cache: this.#cache, trash: this.#trash };
    const recovered = await recover({ files, layout, directoryId: id, ...written, maxUnwrittenBytes: this.#flushAtBytes });
    if (!isNew && recovered.nextBatch === 1) throw new DirectoryError(`the journal in ${this.#layout.journal} is missing`);
    this.#adopt(recovered);
    this.#journal = this.#makeJournal(id, recovered);
    await this.#journal.open();
    if (isNew) await writeMarker(this.#files, this.#layout, id);
    for (const file of recovered.sealed) this.#checkpoint(file);
    await this.#trash.emptyAll();
    const { records, bytes, streams } = recovered;
    if (records > 0) {
      const ms = this.#options.clock.nowMs() - startedMs;
      this.#options.log.info("recovered from the journal", { streams: streams.size, records, bytes, ms });
    }
  }

  #adopt(recovered: Recovered): void {
    for (const [name, stream] of recovered.streams) {
      this.#streams.set(name, stream);
      stream.unreserve();
      if (stream.written < stream.state.tail) this.#unwritten.add(stream);
      if (stream.damage !== null) this.#options.log.error("a stream is damaged", { stream: name, directory: stream.directory, problem: stream.damage });
    }
  }

  #makeJournal(directoryId: Buffer, recovered: Recovered): Journal {
    const { clock, log, journalBytes } = this.#options;
    return new Journal({
      files: this.#files,
      layout: this.#layout,
      clock,
      log,
      directoryId,
      fileBytes: journalBytes,
      firstSequence: recovered.nextSequence,
      firstBatch: recovered.nextBatch,
      olderFiles: recovered.sealed.length,
      apply: (entry, batch) => this.#apply(entry, batch),
      batchSettled: () => this.#batchSettled(),
      sealed: (file) => this.#checkpoint(file),
      fault: (error) => this.#fault(error),
    });
  }

  #openJournal(): Journal {
    if (this.#journal === null) throw new Error("the storage is not open");
    return this.#journal;
  }

  #checkpoint(file: SealedFile): void {
    void this.#checkpointer.add(file).then(() => {
      // What only recovery brought into memory leaves it again.
      for (const stream of file.streams) if (!stream.handedOut) this.release(stream);
    });
  }

  #fault(problem: unknown): void {
    if (this.#faulted !== null) return;
    const error = problem instanceof Error ? problem : new Error(String(problem));
    this.#faulted = error;
    this.#intake.stop();
    this.#checkpointer.stop();
    this.#journal?.stop();
    this.#options.log.error("the disk failed: nothing is written any more", { fault: error.message });
    this.#options.onFault(error);
  }

  async load(name: string): Promise<StoredStream | null> {
    const known = this.#streams.get(name) ?? (await this.#loadFromDisk(name));
    if (known === null) return null;
    if (known.damage !== null) throw new DamagedStreamError(name, known.directory, known.damage);
    known.handedOut = true;
    return known;
  }

  async #loadFromDisk(name: string): Promise<FileStream | null> {
    if (this.#trash.isVacating(name)) return null;
    const directory = this.#layout.streamDirectory(name);
    const read = await readSidecar(this.#files, name, directory).catch((error: unknown) => {
      throw isBusy(error) ? new StorageBusyError(`the stream ${JSON.stringify(name)} can't be read now`, { cause: error }) : error;
    });
    const known = this.#streams.get(name);
    if (known !== undefined) return known;
    if (read instanceof DamagedStreamError) throw read;
    if (read === null) return null;
    if (read.claimed) {
      // Its creation never became durable, or the next start shows that it did.
      if (this.#faulted === null) await this.#trash.discard(directory, `${read.id}-unborn`, true);
      return null;
    }
    const stream = new FileStream(read, directory, read);
    stream.created = true;
    this.#streams.set(name, stream);
    return stream;
  }

  create(name: string, config: StreamConfig, initial: AppendRecord, settle: (how: Settlement) => void): StoredStream | Rejection {
    const predecessor = this.#streams.get(name) ?? null;
    const rejection = this.#intake.admitCreation(initial.payload.length, predecessor);
    if (rejection !== null) return rejection;
    const stream = new FileStream({ id: randomBytes(STREAM_ID_BYTES).toString("hex"), name, config }, this.#layout.streamDirectory(name), null);
    stream.handedOut = true;
    stream.work = this.#trash.vacated(name);
    stream.predecessor = predecessor;
    this.#intake.follow(stream, predecessor);
    this.#streams.set(name, stream);
    this.#intake.put(stream, RecordKind.create, initial, (how) => {
      if (how === "durable") stream.predecessor = null;
      else this.#uncreate(stream, how);
      settle(how);
    });
    return stream;
  }

  /** The creation failed: whatever was there before still is, and files made for a large first payload go. */
  #uncreate(stream: FileStream, how: Settlement): void {
    stream.deleted = true;
    if (this.#streams.get(stream.name) === stream) {
      const before = stream.lastNotDeleted();
      if (before === null) this.#streams.delete(stream.name);
      else this.#streams.set(stream.name, before);
    }
    // After a failed sync the record may be there: the next start needs the files then.
    if (how !== "storage-unavailable") this.#trash.take(stream);
  }

  append(stored: StoredStream, record: AppendRecord, expectedTail: Position, settle: (how: Settlement) => void): Rejection | null {
    const stream = ownStream(stored);
    const rejection = this.#intake.admit(record.payload.length);
    if (rejection !== null) return rejection;
    if (stream.reservedTail !== expectedTail) return "tail-moved";
    this.#intake.put(stream, RecordKind.append, record, settle);
    return null;
  }

  delete(stored: StoredStream, settle: (how: Settlement) => void): Rejection | null {
    const stream = ownStream(stored);
    const rejection = this.#intake.admit(0);
    if (rejection !== null) return rejection;
    this.#intake.put(stream, RecordKind.delete, emptyChange(this.#options.clock.nowMs()), this.#trash.follow(stream, settle));
    return null;
  }

  touch(stored: StoredStream, atMs: number): boolean {
    const stream = ownStream(stored);
    if (stream.deleted || this.#intake.admit(0) !== null) return false;
    this.#intake.put(stream, RecordKind.touch, emptyChange(atMs), null);
    return true;
  }

  barrier(stored: StoredStream, settle: (how: Settlement) => void): void {
    this.#intake.barrier(ownStream(stored), settle);
  }

  /** A change is durable. */
  #apply(entry: JournalEntry, batch: number): void {
    const { stream } = entry;
    switch (entry.kind) {
      case RecordKind.touch:
        return stream.touch(entry.change.atMs, batch);
      case RecordKind.delete:
        return this.#applyDelete(stream);
      case RecordKind.create:
        stream.created = true;
        return this.#applyAppend(stream, entry, batch);
      case RecordKind.append:
        return this.#applyAppend(stream, entry, batch);
    }
  }

  #applyAppend(stream: FileStream, entry: JournalEntry, batch: number): void {
    const { change, position, segmentStart, bypassed } = entry;
    const { length } = change.payload;
    stream.advance(change, length, segmentStart, batch);
    if (length > 0) {
      this.#unwritten.add(stream);
      if (bypassed === null) this.#cache.append(stream, segmentStart, position, change.payload);
      else this.#cache.appendWritten(stream, segmentStart, position, change.payload, bypassed.crc);
      if (this.#cache.unwrittenBytes > this.#flushAtBytes || this.#cache.isOverfull) this.#flushOldest();
    }
    const { observer } = stream;
    if (observer === null) return;
    observer.advanced(position, position + length, stream.state.closed);
    this.#observersToSettle.add(observer);
  }

  #applyDelete(stream: FileStream): void {
    stream.deleted = true;
    if (this.#streams.get(stream.name) === stream) this.#streams.delete(stream.name);
    this.#cache.drop(stream, stream.state.tail - stream.written);
    this.#unwritten.delete(stream);
    stream.observer?.deleted();
  }

  #batchSettled(): void {
    if (this.#observersToSettle.size === 0) return;
    for (const observer of this.#observersToSettle) observer.settled();
    this.#observersToSettle.clear();
  }

  /** Writes the streams that have waited longest to their segments, until few bytes wait. */
  #flushOldest(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    void this.#flushLoop().finally(() => (this.#flushing = false));
  }

  async #flushLoop(): Promise<void> {
    for (const stream of this.#unwritten) {
      if (this.#cache.unwrittenBytes <= this.#flushAtBytes / 2 && !this.#cache.isOverfull) return;
      this.#unwritten.delete(stream);
      try {
        await this.#writer.flush(stream);
      } catch (error) {
        this.#unwritten.add(stream);
        // What passes is tried again with the next append; the bytes are in the journal.
        if (!isPassing(error)) this.#fault(error);
        return;
      }
    }
  }

  read(stored: StoredStream, from: Position, maxBytes: number): MaybePromise<Buffer> {
    const stream = ownStream(stored);
    const { cached } = stream;
    if (from < cached.start) return readThrough(this.#pool, this.#cache, stream, from, Math.min(maxBytes, cached.start - from));
    this.#cache.used(stream);
    return cached.read(from, maxBytes);
  }

  list(): AsyncIterable<ListedStream> {
    return listStreams(this.#files, this.#layout, this.#options.clock);
  }

  persist(stored: StoredStream): Promise<void> {
    return this.#writer.persist(ownStream(stored)).catch((error: unknown) => {
      // Nor is this sync tried again and believed.
      if (!isPassing(error)) this.#fault(error);
      throw error;
    });
  }

  release(stored: StoredStream): boolean {
    const stream = ownStream(stored);
    const isInUse = stream.pending > 0 || stream.held !== null || stream.observer !== null;
    if (isInUse || !stream.isPersisted || !stream.hasSidecar || stream.damage !== null) return false;
    this.#cache.drop(stream, stream.state.tail - stream.written);
    this.#unwritten.delete(stream);
    this.#journal?.forget(stream);
    if (this.#streams.get(stream.name) === stream) this.#streams.delete(stream.name);
    return true;
  }

  health(): StorageHealth {
    if (this.#faulted !== null) return { writable: false, reason: "the disk failed" };
    if (this.#journal?.isFull === true) return { writable: false, reason: "the disk is full" };
    return { writable: true, reason: null };
  }

  async close(): Promise<void> {
    const journal = this.#journal;
    if (journal !== null) {
      if (this.#faulted === null) await this.#seal(journal);
      await this.#checkpointer.end();
      await this.#trash.stop();
      await this.#pool.closeAll();
      await journal.close();
    }
    await this.#unlock?.();
    this.#unlock = null;
  }

  /** Hands the last journal file to its checkpoint, if there is room. What comes too late fails, lest it is waited for. */
  async #seal(journal: Journal): Promise<void> {
    try {
      const sealed = await journal.roll();
      if (sealed !== null) this.#checkpoint(sealed);
    } catch (error) {
      if (!isPassing(error)) this.#fault(error);
    }
    journal.stop();
  }
}
