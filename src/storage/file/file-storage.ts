import { EngineFigures } from "./engine-figures.js";
import { reportRecovery } from "../../ops/diagnostics.js";
import type { StorageFigures } from "../figures.js";
import type {
  Allocate,
  AppendRecord,
  DamagedStreamError,
  FoundPlace,
  ListedStream,
  MaybePromise,
  Position,
  Rejection,
  RetentionLimits,
  Settlement,
  Storage,
  StorageHealth,
  StoredStream,
  StreamConfig,
} from "../storage.js";
import { listStreams } from "./directory/catalog.js";
import { BackupDesk } from "./writing/backup-desk.js";
import { Checkpointer, type SealedFile } from "./writing/checkpointer.js";
import { DamageLog } from "./segments/damage-log.js";
import { explainUnusable, prepareDirectory, writeMarker, type PreparedDirectory } from "./directory/directory.js";
import { DurableChanges } from "./writing/durable-changes.js";
import { allEnded } from "./disk/all-ended.js";
import { EngineState } from "./disk/engine-state.js";
import { FileStream, ownStream } from "./memory/file-stream.js";
import { isPassing, systemFiles } from "./disk/files.js";
import type { FileStorageOptions } from "./file-storage-options.js";
import { SMALL_JOURNAL_BYTES } from "./journal/journal-file.js";
import { Flusher } from "./segments/flusher.js";
import { emptyChange } from "./journal/frame-encoder.js";
import { Admission } from "./writing/admission.js";
import { Journal } from "./journal/journal.js";
import { Layout } from "./format/layout.js";
import { NameLog } from "./directory/name-log.js";
import { DirectoryError, lockDirectory } from "./directory/lock.js";
import { RecordKind } from "./format/record.js";
import { recover, sealedFile, type Recovered } from "./recovery/recovery.js";
import { PlaceFinder, type CountMessages } from "./place-finder.js";
import { isUntied, ForkTies } from "./writing/fork-ties.js";
import { DiskSpace } from "./disk/disk-space.js";
import { newStreamId } from "../stream-id.js";
import { FileStreamList } from "./stream-list.js";
import { StreamLoader } from "./segments/stream-loader.js";
import { StreamReader } from "./segments/stream-reader.js";
import { streamFiles, type StreamFiles } from "./segments/stream-files.js";

/** What names of streams may take in memory: those of about two million. */
const MAX_NAMES_BYTES = 128 * 1024 * 1024;
/** How long a clean end goes on bringing what the journal has to the streams' own files. */
const CLOSE_MS = 5000;

/** What a start has before the journal goes on: the directory is this process's, and what it holds is known. */
interface Prepared {
  readonly parts: StreamFiles;
  readonly recovered: Recovered;
  readonly directory: PreparedDirectory;
  readonly backupDesk: BackupDesk;
  readonly unlock: () => Promise<void>;
}

/** Keeps streams in a directory: a shared journal in front, segments and sidecars behind it. */
export class FileStorage implements Storage {
  readonly streamList: FileStreamList;
  readonly isRestored: boolean;
  readonly #parts: StreamFiles;
  readonly #unlock: () => Promise<void>;
  readonly #streams = new Map<string, FileStream>();
  readonly #journal: Journal;
  readonly #checkpointer: Checkpointer;
  readonly #admission: Admission;
  readonly #diskSpace: DiskSpace;
  readonly #flusher: Flusher;
  readonly #damageLog: DamageLog;
  readonly #loader: StreamLoader;
  readonly #reader: StreamReader;
  readonly #places: PlaceFinder;
  readonly #forkTies: ForkTies;
  readonly #changes: DurableChanges;
  readonly #figures: EngineFigures;
  readonly #nameLog: NameLog;
  #opening: Promise<boolean> = Promise.resolve(true);
  #closing: Promise<void> | null = null;

  /** Takes a directory, recovers what the last process left, and goes on from it. Throws {@link DirectoryError}. */
  static async open(options: FileStorageOptions): Promise<FileStorage> {
    const { clock, log, forceUnlock: force = false, files = systemFiles(options.fsync) } = options;
    const layout = new Layout(options.dir);
    const state = new EngineState({ clock, log }, options.onFault);
    const parts = streamFiles({ files, layout, clock, log, state }, options);
    const backupDesk = new BackupDesk(parts);
    let unlock = (): Promise<void> => Promise.resolve();
    let journal: Journal | null = null;
    try {
      await files.makeDirectory(layout.root);
      unlock = await lockDirectory(files, layout.lock, { force, log, conversations: backupDesk.conversations });
      await parts.pool.respectLimit((error) => state.fail(error));
      const startedMs = clock.nowMs();
      const directory = await prepareDirectory(files, layout, startedMs, options.besides);
      const { id: directoryId, isNew } = directory;
      const recovered = await recover({ ...parts, directoryId, maxUnwrittenBytes: options.tailCacheBytes / 2 });
      if (!isNew && recovered.nextBatch === 1) throw new DirectoryError(`the journal in ${layout.journal} is missing`);
      const storage = new FileStorage(options, { parts, recovered, directory, backupDesk, unlock });
      journal = storage.#journal;
      await journal.open({
        apply: (entry, batch) => storage.#changes.apply(entry, batch),
        batchSettled: () => storage.#changes.batchSettled(),
        sealed: (file) => storage.#checkpoint(file),
      });
      if (isNew) await writeMarker(files, layout, directoryId);
      await parts.trash.emptyAll();
      storage.#goOn(recovered, startedMs);
      backupDesk.open({ directoryId, lastBatch: () => storage.#changes.lastBatch });
      return storage;
    } catch (error) {
      // What failed first is the reason, whatever else does.
      await Promise.allSettled([Promise.allSettled([parts.pool.closeAll(), journal?.close()]).then(unlock)]);
      throw explainUnusable(layout.root, error);
    }
  }

  private constructor(options: FileStorageOptions, { parts, recovered, directory, backupDesk, unlock }: Prepared) {
    const { tailCacheBytes, journalBytes, fsync } = options;
    const { id: directoryId, restores } = directory;
    this.isRestored = restores.length > 0;
    this.#parts = parts;
    this.#unlock = unlock;
    const diskSpace = (this.#diskSpace = new DiskSpace(parts));
    const journal = (this.#journal = new Journal(parts, {
      diskSpace,
      directoryId,
      pin: backupDesk.pin,
      fsync,
      fileBytes: journalBytes,
      smallBytes: options.journalSmallBytes ?? SMALL_JOURNAL_BYTES,
      observer: options.observer ?? null,
      firstSequence: recovered.nextSequence,
      firstBatch: recovered.nextBatch,
      olderFiles: recovered.sealed.filter(({ isKept }) => isKept !== true).length,
    }));
    const flusher = (this.#flusher = new Flusher(parts, Math.floor(tailCacheBytes / 2)));
    const damageLog = (this.#damageLog = new DamageLog(parts));
    const found = { streams: this.#streams, unopened: recovered.unopened, journal, restores };
    const loader = (this.#loader = new StreamLoader(parts, { ...found, damageLog }));
    this.#reader = new StreamReader(parts, damageLog);
    this.#places = new PlaceFinder(parts);
    const admission = (this.#admission = new Admission(parts, {
      journal,
      flusher,
      diskSpace,
      segmentRoll: { bytes: options.segmentBytes, ageMs: options.segmentAgeMs ?? Infinity },
      bypassBytes: Math.min(options.journalBypassBytes, Math.floor(journalBytes / 4)),
      tailCacheBytes,
    }));
    const forkTies = (this.#forkTies = new ForkTies({ ...parts, ...found, loader, admission }));
    const changes = (this.#changes = new DurableChanges({ ...parts, loader, flusher, forkTies }, recovered.nextBatch));
    const { events } = changes;
    const maxBytes = options.maxNamesBytes ?? MAX_NAMES_BYTES;
    const nameLog = (this.#nameLog = new NameLog({ ...parts, directoryId, events, recovered, changes, maxBytes }));
    this.streamList = new FileStreamList(parts, { ...found, loader, events, nameLog, maxBytes });
    this.#checkpointer = new Checkpointer(parts, journal, nameLog, options.observer);
    this.#figures = new EngineFigures({ ...parts, journal, changes, tailCacheBytes });
    parts.writer.on("damaged", (stream, found) => this.#barred(stream, found));
    loader.on("opened", (stream) => this.#opened(stream));
    forkTies.on("unneeded", (stream) => this.release(stream));
  }

  /** Opens, behind the start, what the journal goes on with, and frees the journal's older files. */
  #goOn({ unopened, records, bytes, sealed }: Recovered, startedMs: number): void {
    const { log, clock } = this.#parts;
    const tookMs = clock.nowMs() - startedMs;
    this.#figures.recovered(tookMs, records);
    reportRecovery(log, unopened.size, records, bytes, tookMs);
    const opened = (this.#opening = unopened.openAll((name) => this.#loader.find(name)));
    for (const file of sealed) this.#checkpoint(opened.then((areAll) => (areAll ? sealedFile(file) : null)));
  }

  /** A stream that the journal goes on with is in memory. */
  #opened(stream: FileStream): void {
    if (stream.damage !== null) this.#barred(stream, stream.damage);
    else if (stream.written < stream.state.tail) this.#flusher.add(stream);
    if (stream.ties.softDeleted && stream.forkCount === 0) void this.#collectNamed(stream.name);
  }

  #checkpoint(coming: SealedFile | Promise<SealedFile | null>): void {
    void this.#checkpointer.add(coming).then(async () => {
      // What only recovery brought into memory leaves it again.
      for (const stream of (await coming)?.streams ?? []) if (!stream.handedOut) this.release(stream);
    });
  }

  lacks(name: string): boolean {
    return this.#loader.lacks(name);
  }

  async load(name: string): Promise<StoredStream | null> {
    await this.#damageLog.deleted(name);
    const known = await this.#loader.find(name);
    if (known === null) return null;
    if (known.damage !== null) throw known.damage;
    await this.#damageLog.telling(this.#forkTies.resolve(known));
    if (this.#streams.get(name) !== known) return this.load(name);
    known.handedOut = true;
    this.#forkTies.collect(known);
    return known;
  }

  create(
    name: string,
    config: StreamConfig,
    initial: AppendRecord,
    settle: (how: Settlement) => void,
  ): StoredStream | Rejection {
    if (this.#streams.has(name)) throw new RangeError(`the name ${JSON.stringify(name)} is not free`);
    const rejection = this.#admission.admit(initial.payload.length);
    if (rejection !== null) return rejection;
    const source = this.#forkTies.sourceOf(config);
    // The source was trimmed past where the fork would begin: the caller has to find the place again.
    const begins = Math.max(source?.earliest ?? 0, source?.pendingTrim?.position ?? 0);
    if (config.forkedFrom !== null && begins > config.forkedFrom.earliest.position) return "overloaded";
    const id = newStreamId();
    const stream = new FileStream({ id, name, config }, this.#parts.layout.streamDirectory(name), null);
    stream.handedOut = true;
    const linking = this.#forkTies.tie(stream, source);
    stream.disk.vacancy = this.#parts.trash.vacated(name);
    this.#loader.enter(stream);
    const settled = (how: Settlement): void => {
      if (how !== "durable") this.#uncreate(stream, how);
      this.#forkTies.created(source);
      settle(how);
    };
    this.#admission.put(stream, RecordKind.create, initial, settled, linking);
    return stream;
  }

  /** The creation failed: the name is free again, and files made for a large first payload go. */
  #uncreate(stream: FileStream, how: Settlement): void {
    stream.deleted = true;
    this.#forkTies.drop(stream);
    this.#loader.leave(stream);
    // After a failed sync the record may be there: the next start needs the files then.
    if (how !== "storage-unavailable") this.#parts.trash.take(stream);
  }

  append(
    stored: StoredStream,
    record: AppendRecord,
    expectedTail: Position,
    settle: (how: Settlement) => void,
  ): Rejection | null {
    const stream = ownStream(stored);
    if (stream.damage !== null) return "stream-damaged";
    const rejection = this.#admission.admit(record.payload.length);
    if (rejection !== null) return rejection;
    if (stream.reservedTail !== expectedTail) return "tail-moved";
    this.#admission.put(stream, RecordKind.append, record, settle);
    return null;
  }

  delete(stored: StoredStream, settle: (how: Settlement) => void): Rejection | null {
    return this.#forkTies.delete(ownStream(stored), this.#damageLog.forgetting(stored.name, settle));
  }

  touch(stored: StoredStream, atMs: number): boolean {
    const stream = ownStream(stored);
    if (stream.isLeaving || this.#admission.admit(0) !== null) return false;
    this.#admission.put(stream, RecordKind.touch, emptyChange(atMs), null);
    return true;
  }
  refresh(): void {}

  trim(stored: StoredStream, limits: RetentionLimits, nowMs: number): void {
    const stream = ownStream(stored);
    const place = stream.excessPlace(limits, nowMs);
    if (place === null || !stream.mayBeTrimmed || this.#admission.admitFreeing() !== null) return;
    stream.pendingTrim = place;
    const weaning = this.#forkTies.weaning(stream, place);
    const { earliest } = stream;
    const settle = (how: Settlement): void => {
      stream.pendingTrim = null;
      if (how === "durable") this.#figures.trimmed(place.position - earliest);
    };
    this.#admission.trim(stream, place, this.#parts.clock.nowMs(), settle, weaning);
  }

  barrier(stored: StoredStream, settle: (how: Settlement) => void, expectedTail?: Position): void {
    this.#admission.barrier(ownStream(stored), settle, expectedTail);
  }

  whenFreed(stored: StoredStream): Promise<void> | null {
    return this.#forkTies.whenFreed(ownStream(stored));
  }

  async deleteDamaged(name: string): ReturnType<Storage["deleteDamaged"]> {
    const known = this.#streams.get(name) ?? null;
    // It is sound again, and can be loaded in a moment. A fork whose source is lost never can.
    if (known !== null && known.damage === null && !isUntied(known)) return "overloaded";
    return this.#damageLog.delete(name, known, (stream, settle) => this.#forkTies.deleteDamaged(stream, settle));
  }

  /** The stream takes nothing more; what the journal has of it is kept, and memory need not be. */
  #barred(stream: FileStream, damage: DamagedStreamError): void {
    this.#flusher.drop(stream);
    this.#damageLog.told(damage);
  }

  read(stored: StoredStream, from: Position, maxBytes: number, allocate?: Allocate): MaybePromise<Buffer> {
    return this.#reader.read(ownStream(stored), from, maxBytes, allocate);
  }

  endOfRead(stored: StoredStream, from: Position, maxBytes: number): MaybePromise<Position | null> {
    return this.#reader.endOfRead(ownStream(stored), from, maxBytes);
  }

  placeOfLast(stored: StoredStream, count: number, countIn: CountMessages): Promise<FoundPlace | null> {
    return this.#places.last(ownStream(stored), count, countIn);
  }

  placeSince(stored: StoredStream, atMs: number): Promise<Position> {
    return this.#places.since(ownStream(stored), atMs);
  }

  /** Loading a stream that was only kept for its forks finds out that there are none any more. */
  async #collectNamed(name: string): Promise<void> {
    try {
      await this.load(name);
    } catch (error) {
      this.#parts.log.warn("a deleted stream's files could not be removed yet", { stream: name, fault: String(error) });
    }
  }

  async *list(): AsyncGenerator<ListedStream> {
    await this.#opening;
    yield* listStreams(this.#parts, this.#streams, (name) => void this.#collectNamed(name));
  }

  async persist(stored: StoredStream): Promise<void> {
    try {
      await this.#parts.writer.persist(ownStream(stored));
    } catch (error) {
      // A sync that failed here would be believed by the next checkpoint.
      if (!isPassing(error)) this.#parts.state.fail(error);
      throw error;
    }
  }

  release(stored: StoredStream): boolean {
    const stream = ownStream(stored);
    // What the file being written has of a damaged stream is kept by that file's checkpoint, which has to know of it.
    const isHeld = stream.damage !== null && this.#journal.holds(stream);
    if (stream.isInUse || isHeld || !stream.isOnDisk) return false;
    this.#flusher.drop(stream);
    // With the file that has its deletion goes what older files have kept of it.
    if (!stream.deleted) this.#journal.forget(stream);
    this.#forkTies.drop(stream);
    this.#loader.leave(stream);
    return true;
  }

  health(): StorageHealth {
    const reason = this.#parts.state.failure !== null ? "the disk failed" : this.#admission.trouble;
    return { writable: reason === null, reason, damagedStreams: this.#damageLog.streamCount };
  }

  figures(): StorageFigures {
    return this.#figures.take();
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const { clock, state, trash, writer, pool } = this.#parts;
    state.end();
    await this.#diskSpace.idle();
    // What is not in the streams' own files by then goes there at the next start, and nobody waits for it.
    const deadline = clock.after(CLOSE_MS, () => state.stop());
    if (state.failure === null) await this.#seal();
    await this.#checkpointer.idle();
    deadline.cancel();
    state.stop();
    await Promise.all([trash.idle(), writer.idle()]);
    // Nothing writes any more, whatever can't be closed or removed: others may have the directory.
    await allEnded([pool.closeAll(), this.#journal.close(), this.#nameLog.end()]).finally(this.#unlock);
  }

  /** Hands the last journal file to its checkpoint, if there is room. What comes too late fails, so nobody waits. */
  async #seal(): Promise<void> {
    try {
      const sealed = await this.#journal.roll();
      if (sealed !== null) this.#checkpoint(sealed);
    } catch (error) {
      if (!isPassing(error)) this.#parts.state.fail(error);
    }
    this.#journal.stop();
  }
}
