import { join } from "node:path";
import type { Settlement } from "../storage.js";
import type { Clock } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import { isDiskFull, type Files } from "./files.js";
import { FrameEncoder } from "./frame-encoder.js";
import type { JournalEntry } from "./journal-entry.js";
import { JournalFile } from "./journal-file.js";
import { isSpare, sparePath, type Layout } from "./layout.js";
import type { FileStream } from "./file-stream.js";

/** What a journal needs. */
export interface JournalOptions {
  readonly files: Files;
  readonly layout: Layout;
  readonly clock: Clock;
  readonly log: Log;
  readonly directoryId: Buffer;
  /** A file is full at about this size. */
  readonly fileBytes: number;
  /** The sequence of the first file to write, and the batch of its first frame. */
  readonly firstSequence: number;
  readonly firstBatch: number;
  /** Journal files from before, each still needed by the checkpoint or free to be used again. */
  readonly olderFiles: number;
  /** Applies a durable entry, before its `settle` is called. */
  readonly apply: (entry: JournalEntry, batch: number) => void;
  /** All entries of a batch are applied and settled. */
  readonly batchSettled: () => void;
  /** A file is full: when all it holds is in the streams' own files, `retire` it. */
  readonly sealed: (file: JournalFile) => void;
  /** The disk failed: nothing is written any more. */
  readonly fault: (error: Error) => void;
}

/** Files that may wait for their checkpoint while another is written. */
const MAX_SEALED_FILES = 3;
/** Payload that went past the journal counts towards a file's size at this fraction of it. */
const BYPASS_WEIGHT = 1 / 16;
/** How soon room for the journal is looked for again after the disk was full. */
const FULL_RETRY_MS = 1000;
/** A sync that takes longer than this is worth a line in the log. */
const SLOW_SYNC_MS = 1000;

/**
 * The write-ahead log that all streams share. What arrives while one batch is synced makes up the next: one write and
 * one sync, however many streams. Entries settle in the order in which they were handed in.
 */
export class Journal {
  readonly #options: JournalOptions;
  readonly #encoder: FrameEncoder;
  #active: JournalFile | null = null;
  #next: JournalFile | null = null;
  #preparing = false;
  #preparation: Promise<void> = Promise.resolve();
  #allocating = false;
  /** The file before the active one, until that holds a frame: without any, the count of batches would be lost. */
  #left: JournalFile | null = null;
  readonly #spares: string[] = [];
  #unretired: number;
  #nextSequence: number;
  #batch: number;
  #queue: JournalEntry[] = [];
  #queuedBytes = 0;
  #writing = false;
  #scheduled = false;
  #stopped = false;
  #fullSinceMs: number | null = null;
  /** Why the next file could not be made ready, while a batch is on its way. */
  #trouble: Error | null = null;
  #idle: (() => void) | null = null;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#encoder = new FrameEncoder(options.directoryId);
    this.#nextSequence = options.firstSequence;
    this.#batch = options.firstBatch;
    this.#unretired = options.olderFiles;
  }

  /** Bytes of payload that wait for the disk. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Whether there was no room for the journal when it was last looked for. */
  get isFull(): boolean {
    return this.#fullSinceMs !== null;
  }

  /** Makes the first file, with an empty frame that keeps the count of batches. */
  async open(): Promise<void> {
    const { files, layout } = this.#options;
    for (const name of await files.list(layout.journal)) if (isSpare(name)) await files.unlink(join(layout.journal, name));
    this.#active = await this.#makeFile();
    await this.#writeEmptyFrame(this.#active);
  }

  /** Hands an entry in. It settles later, never at once. */
  enqueue(entry: JournalEntry): void {
    if (this.#stopped) {
      queueMicrotask(() => entry.settle?.("storage-unavailable"));
      return;
    }
    entry.stream.pending += 1;
    this.#queue.push(entry);
    this.#queuedBytes += entry.change.payload.length;
    this.#schedule();
  }

  /** Whether to refuse a change because the disk is full; one a second is let through to find out whether it still is. */
  refusesAsFull(): boolean {
    if (this.#fullSinceMs === null) return false;
    const nowMs = this.#options.clock.nowMs();
    if (nowMs - this.#fullSinceMs < FULL_RETRY_MS) return true;
    this.#fullSinceMs = nowMs;
    return false;
  }

  /** Resolves once everything handed in has settled. */
  async drain(): Promise<void> {
    while (this.#writing || this.#queue.length > 0) await new Promise<void>((resolve) => (this.#idle = resolve));
  }

  /** Seals the file being written and goes on in a new one, which has an empty frame. */
  async roll(): Promise<JournalFile | null> {
    await this.drain();
    await this.#preparation;
    const sealed = this.#active;
    const next = this.#next ?? (await this.#makeFile());
    this.#next = null;
    await this.#writeEmptyFrame(next);
    this.#active = next;
    this.#sealLeft();
    if (sealed !== null) this.#unretired += 1;
    return sealed;
  }

  /** What the sealed file at `path` holds is permanent elsewhere: the file may be used again. */
  async retire(path: string): Promise<void> {
    const { files } = this.#options;
    if (this.#spares.length === 0 && !this.#stopped) {
      // Out of recovery's sight: the files after it may go while it waits here.
      await files.rename(path, sparePath(path));
      this.#spares.push(sparePath(path));
    } else {
      await files.unlink(path);
    }
    this.#unretired -= 1;
    this.#prepare();
    this.#schedule();
  }

  /** A sealed file was taken away to be kept: it is not to be used again. */
  setAside(): void {
    this.#unretired -= 1;
    this.#prepare();
    this.#schedule();
  }

  /** Forgets a stream that memory lets go of; its handle in the file being written stays taken. */
  forget(stream: FileStream): void {
    this.#active?.streams.delete(stream);
  }

  /** Writes nothing more: what waits fails, what is on its way to the disk settles as it ends. */
  stop(): void {
    this.#stopped = true;
    if (!this.#writing) this.#fail([], "storage-unavailable");
  }

  /** Closes the files. Entries that are still there never settle. */
  async close(): Promise<void> {
    this.#stopped = true;
    await this.#preparation;
    await this.#active?.close();
    if (this.#next !== null) {
      await this.#next.close();
      await this.#options.files.unlink(this.#next.path);
    }
    for (const path of this.#spares) await this.#options.files.unlink(path);
  }

  #schedule(): void {
    if (this.#scheduled || this.#writing || this.#queue.length === 0) return;
    this.#scheduled = true;
    // After the poll phase: all requests that arrived together are in one batch.
    setImmediate(() => {
      this.#scheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    if (this.#writing || this.#stopped || this.#queue.length === 0) return;
    const file = this.#writableFile();
    if (file === null) return;
    const { taken, frame } = this.#encoder.encode(this.#queue, file, this.#batch);
    const entries = taken === this.#queue.length ? this.#queue : this.#queue.slice(0, taken);
    this.#queue = taken === this.#queue.length ? [] : this.#queue.slice(taken);
    if (frame === null) return this.#settle(entries, this.#batch - 1);
    const batch = this.#batch;
    this.#batch += 1;
    this.#writing = true;
    const startedMs = this.#options.clock.nowMs();
    file.file.writeThen(frame, file.offset, (error) => this.#written(file, entries, batch, error, startedMs));
    file.offset = this.#encoder.endOf(file.offset, frame);
    if (file.wantsAllocation) this.#allocate(file);
    if (this.#isNearlyFull(file)) this.#prepare();
  }

  #written(file: JournalFile, entries: JournalEntry[], batch: number, error: Error | null, startedMs: number): void {
    this.#writing = false;
    const tookMs = this.#options.clock.nowMs() - startedMs;
    if (tookMs > SLOW_SYNC_MS) this.#options.log.warn("the disk is slow", { syncMs: tookMs });
    if (error !== null) return this.#failed(file, entries, batch, error);
    this.#fullSinceMs = null;
    this.#sealLeft();
    // The next batch is on its way to the disk while this one is answered; what writes nothing settles after it.
    if (this.#trouble === null && this.#queue.some(writesRecord)) this.#pump();
    this.#settle(entries, batch);
    const trouble = this.#trouble;
    this.#trouble = null;
    if (trouble !== null) this.#preparationFailed(trouble);
    else if (this.#stopped) this.#fail([], "storage-unavailable");
  }

  #sealLeft(): void {
    const left = this.#left;
    this.#left = null;
    if (left !== null) this.#options.sealed(left);
  }

  #settle(entries: JournalEntry[], batch: number): void {
    for (const entry of entries) {
      this.#queuedBytes -= entry.change.payload.length;
      entry.stream.pending -= 1;
      const isVoid = entry.generation !== entry.stream.generation;
      if (!isVoid && entry.kind !== null) this.#options.apply(entry, batch);
      entry.settle?.(isVoid ? "storage-full" : "durable");
    }
    this.#options.batchSettled();
    this.#schedule();
    if (this.#queue.length === 0 && !this.#writing) this.#becomeIdle();
  }

  #becomeIdle(): void {
    const idle = this.#idle;
    this.#idle = null;
    idle?.();
  }

  #failed(file: JournalFile, entries: JournalEntry[], batch: number, error: Error): void {
    if (!isDiskFull(error)) return this.#faulted(entries, error);
    // Nothing of the frame counts: the next one takes its place and its number.
    this.#batch = batch;
    file.offset = this.#encoder.startOfLast;
    this.#declareFull(entries);
  }

  #declareFull(entries: JournalEntry[]): void {
    this.#fullSinceMs = this.#options.clock.nowMs();
    this.#options.log.error("the disk is full: appends are refused until there is room");
    this.#fail(entries, "storage-full");
  }

  #faulted(entries: JournalEntry[], error: Error): void {
    this.#stopped = true;
    this.#fail(entries, "storage-unavailable");
    this.#options.fault(error);
  }

  /** Fails `entries` and all that wait behind them: they were decided on what these would have done. */
  #fail(entries: JournalEntry[], how: Settlement): void {
    const failing = [...entries, ...this.#queue];
    this.#queue = [];
    for (const entry of failing) {
      this.#queuedBytes -= entry.change.payload.length;
      entry.stream.pending -= 1;
    }
    for (const stream of new Set(failing.map((entry) => entry.stream))) stream.unreserve();
    for (const entry of failing) entry.settle?.(how);
    this.#options.batchSettled();
    this.#becomeIdle();
  }

  /** The file for the next frame; `null` when there is none yet: whoever makes it goes on. */
  #writableFile(): JournalFile | null {
    let file = this.#active;
    if (file === null) return null;
    if (file.offset >= this.#limitOf(file)) {
      const next = this.#next;
      if (next === null) {
        this.#prepare();
        return null;
      }
      this.#active = next;
      this.#next = null;
      this.#unretired += 1;
      this.#left = file;
      file = next;
    }
    if (file.hasRoom(this.#encoder.maxFrameBytes)) return file;
    this.#allocate(file);
    return null;
  }

  #limitOf(file: JournalFile): number {
    const { fileBytes } = this.#options;
    return fileBytes - Math.min(this.#encoder.maxFrameBytes, fileBytes / 4) - file.bypassedBytes * BYPASS_WEIGHT;
  }

  #isNearlyFull(file: JournalFile): boolean {
    return file.offset >= this.#limitOf(file) / 2;
  }

  #allocate(file: JournalFile): void {
    if (this.#allocating) return;
    this.#allocating = true;
    file.allocate().then(
      () => {
        this.#allocating = false;
        this.#schedule();
      },
      (error: Error) => {
        this.#allocating = false;
        this.#preparationFailed(error);
      },
    );
  }

  /** Gets the next file ready, unless too many wait for their checkpoint. */
  #prepare(): void {
    if (this.#preparing || this.#next !== null || this.#stopped || this.#unretired >= MAX_SEALED_FILES) return;
    const active = this.#active;
    if (active !== null && !this.#isNearlyFull(active)) return;
    this.#preparing = true;
    this.#preparation = this.#makeFile().then(
      (file) => {
        this.#preparing = false;
        this.#next = file;
        this.#schedule();
      },
      (error: Error) => {
        this.#preparing = false;
        this.#preparationFailed(error);
      },
    );
  }

  #preparationFailed(error: Error): void {
    if (this.#writing) {
      // What is on its way to the disk settles first: the queue was decided on it.
      this.#trouble = error;
      return;
    }
    if (isDiskFull(error)) this.#declareFull([]);
    else this.#faulted([], error);
  }

  async #makeFile(): Promise<JournalFile> {
    const { files, layout, fileBytes } = this.#options;
    const sequence = this.#nextSequence;
    this.#nextSequence += 1;
    const path = layout.journalFile(sequence);
    const spare = this.#spares.pop();
    if (spare !== undefined) await files.rename(spare, path);
    const plainFile = await files.open(path, "write");
    const file = new JournalFile(sequence, path, await files.open(path, "log"), plainFile, await plainFile.size(), fileBytes);
    if (!file.isAllocated && file.wantsAllocation) await file.allocate();
    await files.syncDirectory(layout.journal);
    return file;
  }

  async #writeEmptyFrame(file: JournalFile): Promise<void> {
    const { frame } = this.#encoder.encodeEmpty(file, this.#batch);
    await file.file.write(frame, 0);
    this.#batch += 1;
    file.offset = this.#encoder.endOf(0, frame);
  }
}

function writesRecord({ kind, generation, stream }: JournalEntry): boolean {
  return kind !== null && generation === stream.generation;
}
