import { allEnded } from "../disk/all-ended.js";
import { reportBatch, reportSync } from "../../../ops/diagnostics.js";
import type { StorageObserver } from "../../figures.js";
import type { Settlement } from "../../storage.js";
import type { Retry } from "../../../ops/retry.js";
import { shareOf } from "./batch-share.js";
import type { FileStream } from "../memory/file-stream.js";
import type { EngineParts } from "../disk/engine-state.js";
import { isDiskFull } from "../disk/files.js";
import { FrameEncoder, writesRecord } from "./frame-encoder.js";
import { giveBack, type JournalEntry, type JournalListener } from "./journal-entry.js";
import { limitBytes, type JournalFile } from "./journal-file.js";
import { JournalRefusal } from "./journal-refusal.js";
import { JournalSupply, type JournalSupplyOptions, type JournalUsage } from "./journal-supply.js";
import type { Lack, DiskSpace } from "../disk/disk-space.js";
import { takeBack, type SentFrame } from "./sent-frame.js";

/** Where a journal goes on, and how. */
export interface JournalOptions extends Omit<JournalSupplyOptions, "ready" | "fault"> {
  readonly diskSpace: DiskSpace;
  readonly directoryId: Buffer;
  /** Whether what the file system says is synced is on disk. */
  readonly fsync: boolean;
  /** The batch of the first frame. */
  readonly firstBatch: number;
  readonly observer?: StorageObserver | null;
}

/** Between two tries to take back a frame while the disk is full. */
const FULL_RETRY_MS = 1000;

/**
 * The write-ahead log that all streams share. What arrives while one batch is synced makes up the next: one write and
 * one sync, however many streams. Entries settle in the order in which they were submitted; on a full disk those that
 * make room settle after those that fail.
 */
export class Journal {
  readonly #parts: EngineParts;
  readonly #options: JournalOptions;
  #listener: JournalListener | null = null;
  readonly #encoder: FrameEncoder;
  readonly #supply: JournalSupply;
  #active: JournalFile | null = null;
  /** The file before the active one: sealed once that has a frame, or the count of batches could be lost. */
  #left: JournalFile | null = null;
  #batch: number;
  #queue: JournalEntry[] = [];
  #queuedBytes = 0;
  #writing = false;
  #rolling = false;
  #scheduled = false;
  #stopped = false;
  #isInReserve = false;
  readonly #refusal: JournalRefusal;
  readonly #takingBack: Retry;
  /** A fault of the supply's, while a batch is on its way: that settles first. */
  #supplyFault: Error | null = null;
  #idle: (() => void) | null = null;

  constructor(parts: EngineParts, options: JournalOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#encoder = new FrameEncoder(options.directoryId, options.fsync, options.fileBytes);
    this.#refusal = new JournalRefusal(parts);
    this.#takingBack = parts.state.retry();
    this.#supply = new JournalSupply(parts, {
      ...options,
      ready: () => this.#supplied(),
      fault: (error) => void (this.#writing ? (this.#supplyFault = error) : this.#faulted([], error)),
    });
    this.#batch = options.firstBatch;
    parts.state.on("phase", () => (parts.state.failure === null ? this.#schedule() : this.stop()));
    parts.state.on("space", () => this.#roomFound());
    parts.state.on("blocked", (trouble) => this.#blocked(trouble));
  }

  /** Bytes of payload that wait for the disk. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** How much of its room it takes. */
  get usage(): JournalUsage {
    const file = this.#active;
    return this.#supply.usageWith(file === null ? 0 : file.offset / this.#limitOf(file));
  }

  /** The last batch that is on disk or on its way there. */
  get lastBatch(): number {
    return this.#batch - 1;
  }

  /** Whether and why it refuses changes. */
  get refusal(): Pick<JournalRefusal, "rejection"> {
    return this.#refusal;
  }

  /** Makes the first file, with an empty frame that keeps the count of batches. */
  async open(listener: JournalListener): Promise<void> {
    this.#listener = listener;
    this.#active = await this.#supply.open();
    await this.#writeEmptyFrame(this.#active);
  }

  /** Submits an entry. It settles later, never at once. */
  enqueue(entry: JournalEntry): void {
    // What is on its way to the disk settles first.
    if (this.#stopped && !this.#writing) {
      queueMicrotask(() => entry.settle?.("storage-unavailable"));
      return;
    }
    entry.stream.pending += 1;
    this.#queue.push(entry);
    this.#queuedBytes += entry.change.payload.length;
    this.#schedule();
  }

  /** There is room on the disk again, for what was lacked. */
  #roomFound(): void {
    this.#supply.roomFound();
    this.#refusal.end("frame-room");
    this.#schedule();
  }

  /** The checkpoint can't free a sealed file now, for a reason that passes: what waits for one need not wait long. */
  #blocked(trouble: Error): void {
    this.#supply.checkpointFailed(trouble);
    this.#schedule();
  }

  /** So much of the oldest sealed file is permanent elsewhere, from 0 to 1; `null` while no checkpoint is under way. */
  checkpointAt(done: number | null): void {
    this.#supply.checkpointAt(done);
    this.#schedule();
  }

  /** Resolves once everything submitted has settled. */
  async drain(): Promise<void> {
    while (this.#writing || this.#queue.length > 0) await new Promise<void>((resolve) => (this.#idle = resolve));
  }

  /**
   * Seals the file being written, unless it has no frame, and goes on in a new one after an empty frame: a file without
   * a frame looks like one that lost its frames. Returns the sealed file; `null` without one, or when the disk failed.
   */
  async roll(): Promise<JournalFile | null> {
    await this.drain();
    // The number of the frame that failed is missing: no later one may follow it.
    if (this.#stopped) return null;
    // What comes now waits: there is one buffer for frames, and the sealed file gets no more of them.
    this.#rolling = true;
    try {
      const active = this.#active;
      const isUsed = active === null || active.offset > 0;
      const next = isUsed ? await this.#supply.makeLast() : active;
      await this.#writeEmptyFrame(next);
      this.#active = next;
      this.#sealLeft();
      return isUsed ? active : null;
    } finally {
      this.#rolling = false;
      this.#schedule();
    }
  }

  /** What the sealed file at `path` holds is permanent elsewhere: the file may be used again. */
  async retire(path: string): Promise<void> {
    await this.#supply.retire(path);
    this.#refusal.end("checkpoint-room");
    this.#supplied();
  }

  /** The supply may have what it lacked. */
  #supplied(): void {
    if (!this.#supply.isBusy) this.#refusal.end("file");
    this.#schedule();
  }

  /** Whether the file being written has records of a stream. */
  holds(stream: FileStream): boolean {
    return this.#active?.streams.has(stream) === true;
  }

  /** Forgets a stream that memory evicts; its handle in the file being written stays taken. */
  forget(stream: FileStream): void {
    this.#active?.streams.delete(stream);
  }

  /** Writes nothing more: what waits fails, what is on its way to the disk settles as it ends. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    if (!this.#writing) this.#fail([], "storage-unavailable");
  }

  /** Closes the files, once no frame is on its way to them. Entries that are still there never settle. */
  async close(): Promise<void> {
    this.#stopped = true;
    while (this.#writing) await new Promise<void>((resolve) => (this.#idle = resolve));
    await allEnded([this.#supply.close(), this.#left?.close(), this.#active?.close()]);
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

  /** Writes the next batch, of about `most` entries. */
  #pump(most = Infinity): void {
    if (this.#writing || this.#stopped || this.#queue.length === 0) return;
    // What has nothing to write needs no room.
    const file = this.#rolling ? null : this.#queue.some(writesRecord) ? this.#writableFile() : this.#active;
    if (file === null) return this.#parts.state.syncs.waitForRoom(this.#queue.length > 0);
    const { taken, frame } = this.#encoder.encode(this.#queue, this.#isInReserve ? 1 : most, file, this.#batch);
    const entries = taken === this.#queue.length ? this.#queue : this.#queue.slice(0, taken);
    this.#queue = taken === this.#queue.length ? [] : this.#queue.slice(taken);
    if (frame === null) return this.#settle(entries, this.#batch - 1);
    const [offset, batch, isInReserve] = [file.offset, this.#batch, this.#isInReserve];
    this.#batch += 1;
    this.#writing = true;
    this.#options.observer?.batchSent();
    const sent: SentFrame = { file, offset, frame, entries, batch, isInReserve, isThere: false };
    this.#parts.state.syncs.begin();
    file.file.writeThen(frame, file.offset, (error) => this.#written(sent, error));
    file.offset = this.#encoder.endOf(file.offset, frame);
    const sizeBytes = this.#supply.sizeOf(file);
    if (file.wantsAllocation(sizeBytes)) this.#supply.extend(file);
    else if (file.offset >= this.#limitOf(file, sizeBytes) / 2) this.#supply.prepare();
  }

  #written(sent: SentFrame, error: Error | null): void {
    this.#writing = false;
    const tookMs = this.#parts.state.syncs.end();
    reportSync(this.#parts.log, tookMs);
    if (error !== null) return this.#failed(sent, error);
    this.#options.observer?.batchWritten(sent.entries.length, sent.frame.length);
    reportBatch(this.#parts.log, sent.entries.length, sent.frame.length, tookMs);
    if (!sent.isInReserve) this.#refusal.endAll();
    this.#sealLeft();
    // The next batch is on its way to the disk while this one is answered; what writes nothing settles after it, and
    // so does what can't be written: it was decided on this batch.
    const { trouble, isStuck } = this.#supply;
    if (trouble === null && !isStuck && this.#supplyFault === null && this.#queue.some(writesRecord))
      this.#pump(shareOf(this.#queue.length, sent.entries.length));
    this.#settle(sent.entries, sent.batch);
    this.#endIfOver();
  }

  /** Fails what waits if there was a fault or a stop, once no batch is on its way that would become void with it. */
  #endIfOver(): void {
    if (this.#writing) return;
    if (this.#supplyFault !== null) this.#faulted([], this.#supplyFault);
    else if (this.#stopped) this.#fail([], "storage-unavailable");
  }

  #sealLeft(): void {
    const left = this.#left;
    this.#left = null;
    if (left !== null) this.#listener?.sealed(left);
  }

  #settle(entries: JournalEntry[], batch: number): void {
    for (const entry of entries) {
      this.#queuedBytes -= entry.change.payload.length;
      entry.stream.pending -= 1;
      const isVoid = entry.generation !== entry.stream.generation;
      if (!isVoid && entry.kind !== null) this.#listener?.apply(entry, batch);
      entry.settle?.(isVoid ? this.#refusal.last : "durable");
    }
    this.#listener?.batchSettled();
    this.#schedule();
    if (this.#queue.length === 0 && !this.#writing) this.#becomeIdle();
  }

  #becomeIdle(): void {
    this.#parts.state.syncs.waitForRoom(false);
    const idle = this.#idle;
    this.#idle = null;
    idle?.();
  }

  #failed(sent: SentFrame, error: Error): void {
    this.#options.observer?.batchFailed();
    if (!isDiskFull(error)) return this.#faulted(sent.entries, error);
    this.#refusal.begin("frame-room");
    this.#writing = true;
    takeBack(sent).then(
      () => this.#takenBack(sent),
      (problem: Error) => this.#notTakenBack(sent, problem),
    );
  }

  /** Nothing of the frame counts: the next one takes its place and its number. */
  #takenBack({ file, offset, frame, entries, batch }: SentFrame): void {
    this.#writing = false;
    this.#batch = batch;
    file.offset = offset;
    this.#lackFrame(entries, { offset, length: frame.length });
    this.#endIfOver();
  }

  /** While there is no room for that either, those who asked wait, unless the journal is about to end. */
  #notTakenBack(sent: SentFrame, problem: Error): void {
    this.#writing = false;
    const isEnding = this.#stopped || this.#idle !== null || this.#supplyFault !== null;
    if (!isDiskFull(problem) || isEnding) return this.#faulted(sent.entries, problem);
    this.#writing = true;
    this.#takingBack.after(FULL_RETRY_MS, () => this.#failed(sent, problem));
  }

  #lackFrame(entries: JournalEntry[], lack: Lack): void {
    this.#refusal.begin("frame-room");
    this.#options.diskSpace.lacked(lack);
    this.#fail(entries, "storage-full");
  }

  #faulted(entries: JournalEntry[], error: Error): void {
    this.#stopped = true;
    this.#fail(entries, "storage-unavailable");
    this.#parts.state.fail(error);
  }

  /** Fails `entries` and all behind them, decided on what these would have done; what makes room is yet written. */
  #fail(entries: JournalEntry[], how: Settlement): void {
    const { failing, spared } = giveBack([...entries, ...this.#queue], how);
    this.#queue = spared;
    for (const { change } of failing) this.#queuedBytes -= change.payload.length;
    for (const entry of failing) entry.settle?.(how);
    this.#listener?.batchSettled();
    this.#becomeIdle();
    this.#schedule();
  }

  /** The file for the next frame; `null` when there is none yet: whoever makes it goes on. */
  #writableFile(): JournalFile | null {
    let file = this.#active;
    this.#isInReserve = false;
    if (file === null) return null;
    if (file.offset > 0 && file.offset >= this.#limitOf(file, this.#supply.sizeOf(file))) {
      const next = this.#supply.take();
      if (next !== null) {
        this.#left = file;
        this.#active = file = next;
      } else {
        this.#supply.prepare();
        if (file.offset >= this.#limitOf(file)) return this.#lackRoom();
      }
    }
    if (this.#supply.isAhead(file.offset / this.#limitOf(file))) return null;
    if (file.hasRoom(this.#encoder.longestFrameOf(this.#queue))) return file;
    this.#supply.extend(file);
    return this.#lackRoom();
  }

  /** Nothing but what makes room is written now: others wait, unless the disk is full, or no file opens for long. */
  #lackRoom(): JournalFile | null {
    const { lack, isStuck, isBusy } = this.#supply;
    this.#isInReserve = (lack !== null || (isStuck && !isBusy)) && this.#encoder.fitsReserve(this.#active, this.#queue);
    if (this.#isInReserve) return this.#active;
    if (isStuck) this.#refuse(isBusy ? "file" : "checkpoint-room");
    else if (lack !== null) this.#lackFrame([], lack);
    else if (isBusy) this.#refusal.waitForFile(() => this.#waitedForFile());
    return null;
  }

  #waitedForFile(): void {
    // What is on its way to the disk settles first, and then looks again.
    if (this.#writing || this.#rolling || !this.#supply.isBusy) return this.#schedule();
    this.#refuse("file");
  }

  #refuse(lacked: "checkpoint-room" | "file"): void {
    this.#refusal.begin(lacked);
    this.#fail([], this.#refusal.last);
  }

  /** Where a file that is to have `fileBytes` is full. */
  #limitOf(file: JournalFile, fileBytes = this.#options.fileBytes): number {
    return limitBytes(fileBytes, this.#encoder.maxFrameBytes, file.bypassedBytes);
  }

  async #writeEmptyFrame(file: JournalFile): Promise<void> {
    const { frame } = this.#encoder.encodeEmpty(file, this.#batch);
    await file.file.write(frame, 0).catch(async (error: unknown) => {
      await file.close().catch(() => undefined); // that there is no frame says more
      throw error;
    });
    this.#batch += 1;
    file.offset = this.#encoder.endOf(0, frame);
  }
}
