import { join } from "node:path";
import type { Clock } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import type { Allocate, AppendRecord, DamagedStreamError, ListedStream, MaybePromise, Position, Rejection, Settlement, Storage, StorageHealth, StoredStream, StreamConfig } from "../storage.js";
import { listStreams } from "./directory/catalog.js";
import { Checkpointer, type SealedFile } from "./writing/checkpointer.js";
import { Damage } from "./segments/damage-log.js";
import { explainUnusable, prepareDirectory, writeMarker } from "./directory/directory.js";
import { DurableChanges } from "./writing/durable-changes.js";
import { FileStream, ownStream } from "./memory/file-stream.js";
import { isPassing, poolThreads, systemFiles, type Files } from "./disk/files.js";
import { Flusher } from "./segments/flusher.js";
import { emptyChange } from "./journal/frame-encoder.js";
import type { IndexWriterOptions } from "./segments/index-writer.js";
import { Intake } from "./writing/admission.js";
import { Journal } from "./journal/journal.js";
import { Layout } from "./format/layout.js";
import { DirectoryError, lockDirectory } from "./directory/lock.js";
import { RecordKind } from "./format/record.js";
import { recover, sealedFile, type Recovered } from "./recovery/recovery.js";
import { isUntied, References } from "./writing/fork-ties.js";
import { Room } from "./disk/disk-space.js";
import { SegmentPool } from "./segments/segment-pool.js";
import { SegmentWriter } from "./segments/segment-writer.js";
import { newStreamId } from "./memory/stream-id.js";
import { StreamLoader } from "./segments/stream-loader.js";
import { StreamReader } from "./segments/stream-reader.js";
import { TailCache } from "./memory/tail-cache.js";
import { Trash } from "./segments/trash.js";

/** What the engine needs. Sizes in bytes. */
export interface FileStorageOptions extends Pick<IndexWriterOptions, "maxInlineIndexBytes"> {
  readonly dir: string;
  /** Whether a change is settled only when it is on disk. */
  readonly fsync: boolean;
  /** A stream begins a new segment at about this size, or when the first byte of the last is this old. */
  readonly segmentBytes: number;
  readonly segmentAgeMs?: number;
  readonly journalBytes: number;
  /** An append of this size goes to its segment first; at most a quarter of `journalBytes` counts. */
  readonly journalBypassBytes: number;
  readonly tailCacheBytes: number;
  /** Whether the lock of a process that can't be seen from here is taken away. */
  readonly forceUnlock?: boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** The disk failed: nothing is accepted any more, and the process should end for a clean recovery. */
  readonly onFault: (error: Error) => void;
  /** The file system; the real one when absent. */
  readonly files?: Files;
}

/** How long a clean end goes on bringing what the journal has to the streams' own files. */
const CLOSE_MS = 5000;
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
  readonly #room: Room;
  readonly #flusher: Flusher;
  readonly #damage: Damage;
  readonly #loader: StreamLoader;
  readonly #reader: StreamReader;
  readonly #references: References;
  readonly #changes: DurableChanges;
  readonly #streams = new Map<string, FileStream>();
  /** What the last process left in the journal, until all of it is opened. */
  #unopened: Recovered["unopened"] | null = null;
  #journal: Journal | null = null;
  #unlock: (() => Promise<void>) | null = null;
  #faulted: Error | null = null;

  constructor(options: FileStorageOptions) {
    this.#options = options;
    const { clock, log, maxInlineIndexBytes } = options;
    const files = (this.#files = options.files ?? systemFiles(options.fsync));
    const layout = (this.#layout = new Layout(options.dir));
    const pool = (this.#pool = new SegmentPool(files));
    const cache = (this.#cache = new TailCache(options.tailCacheBytes));
    const fault = (error: Error): void => this.#fault(error);
    const failed = (trouble: Error): void => this.#journal?.checkpointFailed(trouble);
    this.#trash = new Trash({ files, layout, pool, clock, log, failed, fault, noteShard: (directory) => this.#writer.noteShard(directory) });
    const writer = (this.#writer = new SegmentWriter({ files, layout, pool, cache, threads: poolThreads(), maxInlineIndexBytes, damaged: (stream, damage) => this.#damaged(stream, damage) }));
    this.#flusher = new Flusher({ writer, cache, clock, flushAtBytes: Math.floor(options.tailCacheBytes / 2), fault });
    // What a killed process leaves of a probe goes with the rest of the trash.
    this.#room = new Room({ files, probePath: join(layout.trash, "probe"), clock, log, found: () => this.#journal?.roomFound(), fault });
    this.#damage = new Damage({ log, layout, remove: (stream, settle) => this.delete(stream, settle) });
    this.#reader = new StreamReader({ pool, cache, damage: this.#damage, log });
    const journal = (): Journal => this.#openJournal();
    this.#checkpointer = new Checkpointer({ files, writer, trash: this.#trash, journal, layout, clock, log, fault });
    this.#intake = new Intake({
      journal,
      writer,
      cache,
      flusher: this.#flusher,
      room: this.#room,
      segmentRoll: { bytes: options.segmentBytes, ageMs: options.segmentAgeMs ?? Infinity },
      bypassBytes: Math.min(options.journalBypassBytes, Math.floor(options.journalBytes / 4)),
      tailCacheBytes: options.tailCacheBytes,
      fault,
    });
    this.#loader = new StreamLoader({ files, layout, streams: this.#streams, openJournaled: (name) => this.#openJournaled(name), trash: this.#trash, damage: this.#damage, lastBatch: () => this.#openJournal().lastBatch, hasFailed: () => this.#faulted !== null });
    this.#references = new References({
      streams: this.#streams,
      load: (name) => this.#loader.find(name),
      release: (stream) => void this.release(stream),
      intake: this.#intake,
      trash: this.#trash,
      clock,
    });
    this.#changes = new DurableChanges({ leave: (stream) => this.#loader.leave(stream), cache, flusher: this.#flusher, references: this.#references });
  }

  async open(): Promise<void> {
    try {
      await this.#files.makeDirectory(this.#layout.root);
      const { forceUnlock: force = false, log } = this.#options;
      this.#unlock = await lockDirectory(this.#files, this.#layout.lock, { force, log });
      await this.#pool.respectLimit((error) => this.#fault(error));
      await this.#recoverAndStart();
    } catch (error) {
      await this.#pool.closeAll();
      await this.#unlock?.();
      this.#unlock = null;
      throw explainUnusable(this.#layout.root, error);
    }
  }

  async #recoverAndStart(): Promise<void> {
    const { clock, log } = this.#options;
    const startedMs = clock.nowMs();
    const { id, isNew } = await prepareDirectory(this.#files, this.#layout);
    const written = { writer: this.#writer, cache: this.#cache, trash: this.#trash };
    const recovered = await recover({ files: this.#files, layout: this.#layout, directoryId: id, ...written, maxUnwrittenBytes: Math.floor(this.#options.tailCacheBytes / 2) });
    if (!isNew && recovered.nextBatch === 1) throw new DirectoryError(`the journal in ${this.#layout.journal} is missing`);
    const { unopened, records, bytes } = recovered;
    this.#unopened = unopened;
    const journal = (this.#journal = this.#makeJournal(id, recovered));
    await journal.open();
    if (isNew) await writeMarker(this.#files, this.#layout, id);
    await this.#trash.emptyAll();
    const ms = clock.nowMs() - startedMs;
    if (records > 0) log.info("recovered from the journal", { streams: unopened.size, records, bytes, ms });
    if (this.#faulted !== null) unopened.stop();
    const failed = (trouble: Error): void => journal.checkpointFailed(trouble);
    const fault = (error: Error): void => this.#fault(error);
    const opened = unopened.openAll({ open: (name) => this.#loader.find(name), failed, fault, clock });
    void opened.then((areAll) => (this.#unopened = areAll ? null : unopened));
    for (const file of recovered.sealed) this.#checkpoint(opened.then((areAll) => (areAll ? sealedFile(file) : null)));
  }

  async #openJournaled(name: string): Promise<FileStream | null> {
    const stream = (await this.#unopened?.open(name)) ?? null;
    if (stream === null) return null;
    stream.unreserve();
    if (stream.damage !== null) this.#damaged(stream, stream.damage);
    else if (stream.written < stream.state.tail) this.#flusher.add(stream);
    if (stream.softDeleted && stream.forkCount === 0) void this.#collectNamed(name);
    return stream;
  }

  #makeJournal(directoryId: Buffer, recovered: Recovered): Journal {
    const { clock, log, fsync, journalBytes: fileBytes } = this.#options;
    const rooms = { files: this.#files, layout: this.#layout, room: this.#room };
    return new Journal({
      ...rooms,
      clock,
      log,
      directoryId,
      fsync,
      fileBytes,
      firstSequence: recovered.nextSequence,
      firstBatch: recovered.nextBatch,
      olderFiles: recovered.sealed.filter(({ isKept }) => isKept !== true).length,
      apply: (entry, batch) => this.#changes.apply(entry, batch),
      batchSettled: () => this.#changes.batchSettled(),
      sealed: (file) => this.#checkpoint(file),
      fault: (error) => this.#fault(error),
    });
  }

  #openJournal(): Journal {
    if (this.#journal === null) throw new Error("the storage is not open");
    return this.#journal;
  }

  #checkpoint(coming: SealedFile | Promise<SealedFile | null>): void {
    void this.#checkpointer.add(coming).then(async () => {
      // What only recovery brought into memory leaves it again.
      for (const stream of (await coming)?.streams ?? []) if (!stream.handedOut) this.release(stream);
    });
  }

  #fault(problem: unknown): void {
    if (this.#faulted !== null) return;
    const error = (this.#faulted = problem instanceof Error ? problem : new Error(String(problem)));
    this.#writer.fail(error);
    this.#intake.stop();
    this.#leaveRest();
    this.#flusher.stop();
    void this.#room.stop();
    this.#journal?.stop();
    this.#options.log.error("the disk failed: nothing is written any more", { fault: error.message });
    this.#options.onFault(error);
  }

  lacks(name: string): boolean {
    return this.#loader.lacks(name) && this.#unopened?.has(name) !== true;
  }

  async load(name: string): Promise<StoredStream | null> {
    await this.#damage.settled(name);
    const known = await this.#loader.find(name);
    if (known === null) return null;
    if (known.damage !== null) throw known.damage;
    await this.#damage.telling(this.#references.resolve(known));
    if (this.#streams.get(name) !== known) return this.load(name);
    known.handedOut = true;
    this.#references.collect(known);
    return known;
  }

  create(name: string, config: StreamConfig, initial: AppendRecord, settle: (how: Settlement) => void): StoredStream | Rejection {
    const predecessor = this.#streams.get(name) ?? null;
    const rejection = this.#intake.admitCreation(initial.payload.length, predecessor);
    if (rejection !== null) return rejection;
    const source = this.#references.sourceOf(config);
    // The source begins later than the fork would, or is about to: the place has to be looked for again.
    const begins = Math.max(source?.earliest ?? 0, source?.pendingTrim?.position ?? 0);
    if (config.forkedFrom !== null && begins > config.forkedFrom.earliest.position) return "overloaded";
    const id = newStreamId();
    const stream = new FileStream({ id, name, config }, this.#layout.streamDirectory(name), null);
    stream.handedOut = true;
    const linking = this.#references.begin(stream, source);
    stream.work = this.#trash.vacated(name);
    stream.predecessor = predecessor;
    this.#intake.follow(stream, predecessor);
    this.#streams.set(name, stream);
    this.#intake.put(stream, RecordKind.create, initial, (how) => {
      if (how === "durable") stream.predecessor = null;
      else this.#uncreate(stream, how);
      this.#references.settled(source);
      settle(how);
    }, linking);
    return stream;
  }

  /** The creation failed: whatever was there before still is, and files made for a large first payload go. */
  #uncreate(stream: FileStream, how: Settlement): void {
    stream.deleted = true;
    this.#references.drop(stream);
    if (this.#streams.get(stream.name) === stream) {
      const before = stream.lastNotDeleted();
      if (before === null) this.#loader.leave(stream);
      else this.#streams.set(stream.name, before);
    }
    // After a failed sync the record may be there: the next start needs the files then.
    if (how !== "storage-unavailable") this.#trash.take(stream);
  }

  append(stored: StoredStream, record: AppendRecord, expectedTail: Position, settle: (how: Settlement) => void): Rejection | null {
    const stream = ownStream(stored);
    if (stream.damage !== null) return "stream-damaged";
    const rejection = this.#intake.admit(record.payload.length);
    if (rejection !== null) return rejection;
    if (stream.reservedTail !== expectedTail) return "tail-moved";
    this.#intake.put(stream, RecordKind.append, record, settle);
    return null;
  }

  delete(stored: StoredStream, settle: (how: Settlement) => void): Rejection | null {
    return this.#references.delete(ownStream(stored), this.#damage.forgetting(stored.name, settle));
  }

  touch(stored: StoredStream, atMs: number): boolean {
    const stream = ownStream(stored);
    if (stream.deleted || this.#intake.admit(0) !== null) return false;
    this.#intake.put(stream, RecordKind.touch, emptyChange(atMs), null);
    return true;
  }

  trim(stored: StoredStream, before: Position): void {
    const stream = ownStream(stored);
    const place = stream.trimPlace(before);
    if (place === null || stream.pendingTrim !== null || stream.deleted || this.#intake.admit(0) !== null) return;
    stream.pendingTrim = place;
    const weaning = this.#references.weaning(stream, place);
    this.#intake.trim(stream, place, this.#options.clock.nowMs(), () => (stream.pendingTrim = null), weaning);
  }

  barrier(stored: StoredStream, settle: (how: Settlement) => void, expectedTail?: Position): void {
    this.#intake.barrier(ownStream(stored), settle, expectedTail);
  }

  async deleteDamaged(name: string): Promise<Settlement | Rejection> {
    const known = this.#streams.get(name) ?? null;
    // It is well again: a moment later it can be loaded. Not so a fork whose source is lost.
    if (known !== null && known.damage === null && !isUntied(known)) return "overloaded";
    return this.#damage.delete(name, known);
  }

  /** The stream takes nothing more; what the journal has of it is kept, and memory need not be. */
  #damaged(stream: FileStream, damage: DamagedStreamError): void {
    stream.damage = damage;
    this.#flusher.drop(stream);
    this.#damage.told(damage);
  }

  read(stored: StoredStream, from: Position, maxBytes: number, allocate?: Allocate): MaybePromise<Buffer> {
    return this.#reader.read(ownStream(stored), from, maxBytes, allocate);
  }

  endOfRead(stored: StoredStream, from: Position, maxBytes: number): MaybePromise<Position | null> {
    return this.#reader.endOfRead(ownStream(stored), from, maxBytes);
  }

  /** Loading a stream that was only kept for its forks finds out that there are none any more. */
  async #collectNamed(name: string): Promise<void> {
    try {
      await this.load(name);
    } catch (error) {
      this.#options.log.warn("a deleted stream's files could not be removed yet", { stream: name, fault: String(error) });
    }
  }

  list(): AsyncIterable<ListedStream> {
    return listStreams({ files: this.#files, layout: this.#layout, clock: this.#options.clock, unneeded: (name) => void this.#collectNamed(name) });
  }

  async persist(stored: StoredStream): Promise<void> {
    try {
      await this.#writer.persist(ownStream(stored));
    } catch (error) {
      // A sync that failed here would be believed by the next checkpoint.
      if (!isPassing(error)) this.#fault(error);
      throw error;
    }
  }

  release(stored: StoredStream): boolean {
    const stream = ownStream(stored);
    const isInUse = stream.pending > 0 || stream.held !== null || stream.observer !== null || stream.dependents > 0 || stream.pendingForks > 0;
    const isOnDisk = stream.damage === null ? stream.isPersisted && stream.hasSidecar : stream.hasNotice;
    if (isInUse || !isOnDisk) return false;
    this.#flusher.drop(stream);
    this.#journal?.forget(stream);
    this.#references.drop(stream);
    this.#loader.leave(stream);
    return true;
  }

  health(): StorageHealth {
    const reason = this.#faulted !== null ? "the disk failed" : this.#journal === null ? null : this.#intake.trouble;
    return { writable: reason === null, reason, damagedStreams: this.#damage.streamCount };
  }

  async close(): Promise<void> {
    const journal = this.#journal;
    this.#flusher.stop();
    await this.#room.stop();
    if (journal !== null) {
      const deadline = this.#options.clock.after(CLOSE_MS, () => this.#leaveRest());
      if (this.#faulted === null) await this.#seal(journal);
      this.#unopened?.end();
      this.#trash.end();
      await this.#checkpointer.end();
      deadline.cancel();
      await this.#trash.stop();
      await this.#pool.closeAll();
      await journal.close();
    }
    await this.#unlock?.();
    this.#unlock = null;
  }

  /** Brings nothing more from the journal to the streams' own files, and lets nobody wait for that: the next start does. */
  #leaveRest(): void {
    this.#unopened?.stop();
    this.#checkpointer.stop();
    this.#journal?.stopWaiting();
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
