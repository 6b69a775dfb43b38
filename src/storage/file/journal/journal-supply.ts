import { join } from "node:path";
import { allEnded } from "../disk/all-ended.js";
import type { Retry } from "../../../ops/retry.js";
import { CheckpointPace } from "./checkpoint-pace.js";
import { isBusy, isDiskFull, isPassing, removeFile, retryMsAfter } from "../disk/files.js";
import { firstAllocationBytes, JournalFile, journalSizeBytes } from "./journal-file.js";
import { isPutAside, sparePath } from "../format/layout.js";
import type { JournalPin } from "./journal-pin.js";
import type { Lack } from "../disk/disk-space.js";
import type { EngineParts } from "../disk/engine-state.js";

/** Where a supply of journal files goes on, and who hears of it. */
export interface JournalSupplyOptions {
  /** No file grows beyond these, but for a record longer than a quarter of them. */
  readonly fileBytes: number;
  /** What they take while checkpoints keep up. */
  readonly smallBytes: number;
  /** The sequence of the first file to write. */
  readonly firstSequence: number;
  /** Journal files from before, each still needed by the checkpoint or free to be used again. */
  readonly olderFiles: number;
  /** Keeps files for a backup; absent where there can be none. */
  readonly pin?: JournalPin | undefined;
  /** There is a next file, or more room in the one being written; or the disk is full, and there is none. */
  readonly ready: () => void;
  /** There is not, and no retry may help: the disk failed. */
  readonly fault: (error: Error) => void;
}

/** How much of its room the journal takes. */
export interface JournalUsage {
  /** Files that wait for their checkpoint. */
  readonly sealedFiles: number;
  /** Of all that may be written before the journal waits for a checkpoint, from 0 to 1. */
  readonly fill: number;
}

/** Files that may wait for their checkpoint while another is written. */
const MAX_SEALED_FILES = 3;

/** Keeps the journal in files: gets the next one ready in good time, and uses those again that are free. */
export class JournalSupply {
  readonly #parts: EngineParts;
  readonly #options: JournalSupplyOptions;
  #next: JournalFile | null = null;
  #working: Promise<void> | null = null;
  readonly #spares: string[] = [];
  #sealed: number;
  #nextSequence: number;
  #trouble: Error | null = null;
  /** What room was last looked for. */
  #wanted: Lack = { offset: 0, length: 0 };
  readonly #retry: Retry;
  #closed = false;
  /** Why the checkpoint could not free a sealed file when it last tried. */
  #checkpointTrouble: Error | null = null;
  readonly #pace = new CheckpointPace();

  constructor(parts: EngineParts, options: JournalSupplyOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#retry = parts.state.retry();
    this.#nextSequence = options.firstSequence;
    this.#sealed = options.olderFiles;
  }

  /** Why there was no room when it was last looked for; `null` while it is looked for, and when there was some. */
  get trouble(): Error | null {
    return this.#working === null ? this.#trouble : null;
  }

  /** The use of its room where the file being written is `filled` so far, from 0 to 1. */
  usageWith(filled: number): JournalUsage {
    const fill = (this.#sealed + Math.min(1, filled)) / (MAX_SEALED_FILES + 1);
    return { sealedFiles: this.#sealed, fill: Math.min(1, fill) };
  }

  /** For what there was no room when it was last looked for; `null` where the disk was not full. */
  get lack(): Lack | null {
    return isDiskFull(this.trouble) ? this.#wanted : null;
  }

  /** At how many bytes the file being written makes way for the next. */
  sizeOf({ streams }: JournalFile): number {
    const { fileBytes, smallBytes, pin } = this.#options;
    const isBehind = this.#sealed > 0 || pin?.isTaken === true;
    return journalSizeBytes({ fileBytes, smallBytes, streams: streams.size, isBehind });
  }

  /** Whether no next file is made before a checkpoint frees one. */
  get isExhausted(): boolean {
    return this.#next === null && this.#sealed >= MAX_SEALED_FILES;
  }

  /** Whether no file can come: the checkpoint has no room to free one, or nobody waits for one any more. */
  get isStuck(): boolean {
    if (this.#parts.state.isOver) return this.isExhausted || this.trouble !== null;
    return this.isExhausted && isDiskFull(this.#checkpointTrouble);
  }

  /** Whether no file can come before the process may open some again, here or in the checkpoint. It goes on trying. */
  get isBusy(): boolean {
    return isBusy(this.#trouble) || (this.isExhausted && isBusy(this.#checkpointTrouble));
  }

  /** The checkpoint can't free a sealed file now, for a reason that passes. */
  checkpointFailed(trouble: Error): void {
    this.#checkpointTrouble = trouble;
  }

  /** So much of the oldest sealed file is permanent elsewhere, from 0 to 1; `null` while no checkpoint is under way. */
  checkpointAt(done: number | null): void {
    this.#pace.checkpointAt(done);
  }

  /** Whether the file being written, `filled` so far, is to wait for the checkpoint that frees the next one. */
  isAhead(filled: number): boolean {
    if (this.isExhausted && !this.isStuck) return !this.#pace.allows(filled, this.#sealed - MAX_SEALED_FILES + 1);
    this.#pace.reset();
    return false;
  }

  /** There is room again: no need to wait for the next look. */
  roomFound(): void {
    if (isDiskFull(this.#trouble)) this.#trouble = null;
    this.#retry.now();
  }

  /** Makes the first file. */
  async open(): Promise<JournalFile> {
    const { files, layout } = this.#parts;
    for (const name of await files.list(layout.journal))
      if (isPutAside(name)) await files.unlink(join(layout.journal, name));
    // An idle server need not take more.
    return this.#make(firstAllocationBytes(this.#options.fileBytes));
  }

  /** The next file, if it is ready; the one being written then counts as sealed. */
  take(): JournalFile | null {
    const next = this.#next;
    if (next !== null) this.#hand();
    return next;
  }

  /**
   * The file that a clean stop leaves, however long it takes: a new one, as what is used again has bytes of streams
   * that may be deleted by then.
   */
  async makeLast(): Promise<JournalFile> {
    // This is the try: one that is to come must not begin while this one waits for its turn, nor after that.
    this.#retry.cancel();
    while (this.#working !== null) await this.#working;
    this.#retry.cancel();
    await this.#dropReady();
    const last = await this.#make(firstAllocationBytes(this.#options.fileBytes));
    this.#hand();
    return last;
  }

  /** Removes the files that hold nothing. */
  async #dropReady(): Promise<void> {
    const { files } = this.#parts;
    const next = this.#next;
    this.#next = null;
    if (next !== null) this.#nextSequence = next.sequence;
    const removals = this.#spares.map((path) => removeFile(files, path));
    await allEnded([next?.close().finally(() => files.unlink(next.path)), ...removals]);
    this.#spares.length = 0;
  }

  /** The next file is the journal's; the one that it has written until now is sealed, and takes no more room. */
  #hand(): void {
    this.#retry.cancel();
    this.#next = null;
    this.#sealed += 1;
  }

  /** Gets the next file ready, unless too many wait for their checkpoint. */
  prepare(): void {
    if (this.#next !== null || this.isExhausted) return;
    const { fileBytes, smallBytes } = this.#options;
    const length = Math.min(fileBytes, smallBytes);
    this.#work({ offset: 0, length }, async () => {
      this.#next = await this.#make(length);
    });
  }

  /** Makes more room in the file being written. */
  extend(file: JournalFile): void {
    this.#work(file.nextAllocation, () => file.allocate());
  }

  /** What the sealed file at `path` holds is permanent elsewhere: the file may be used again. */
  async retire(path: string): Promise<void> {
    const { files } = this.#parts;
    if (!this.#closed && (await this.#options.pin?.keep(path)) === true) {
      // A backup may still have to copy it.
    } else if (this.#spares.length === 0 && !this.#closed) {
      // Out of recovery's sight: the files after it may go while it waits here.
      await files.rename(path, sparePath(path));
      this.#spares.push(sparePath(path));
    } else {
      await files.unlink(path);
    }
    this.#sealed -= 1;
    this.#checkpointTrouble = null;
    this.roomFound();
  }

  /** Removes the files that hold nothing. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#retry.cancel();
    await this.#working;
    await allEnded([this.#dropReady(), this.#options.pin?.close()]);
  }

  /** One thing at a time, and nothing for a while after it failed. */
  #work(wanted: Lack, run: () => Promise<void>): void {
    const { state } = this.#parts;
    // Once the engine is over, one try has to do.
    const isLeft = state.failure !== null || (state.isOver && this.#trouble !== null);
    if (this.#working !== null || this.#closed || this.#retry.isPending || isLeft) return;
    this.#wanted = wanted;
    const again = (): void => this.#work(wanted, run);
    this.#working = run().then(
      () => this.#worked(null, again),
      (error: Error) => this.#worked(error, again),
    );
  }

  #worked(error: Error | null, again: () => void): void {
    const { ready } = this.#options;
    this.#working = null;
    this.#parts.state.syncs.progressed();
    const isNew = this.#trouble === null;
    this.#trouble = error;
    if (error === null) return ready();
    if (isDiskFull(error)) this.#parts.state.emit("full");
    if (!isPassing(error)) return this.#options.fault(error);
    if (isNew) this.#parts.log.warn("the journal can't get more room now", { fault: error.message });
    if (this.#closed) return;
    // Nobody waits for another try, and who waits for this one hears of it.
    if (this.#parts.state.isOver) return ready();
    // On a busy machine it is tried again whether or not anybody waits: appends are taken again as soon as it succeeds.
    if (isBusy(error)) return this.#retry.after(retryMsAfter(error), again);
    // Who waits on a full disk is told at once.
    this.#retry.after(retryMsAfter(error), ready);
    ready();
  }

  async #make(ready: number): Promise<JournalFile> {
    const { files, layout, state } = this.#parts;
    const sequence = this.#nextSequence;
    const grown = (): void => state.syncs.progressed();
    const path = layout.journalFile(sequence);
    const spare = this.#spares.at(-1);
    if (spare !== undefined) await files.rename(spare, path);
    this.#spares.pop();
    let file: JournalFile | null = null;
    try {
      const sizes = { sequence, limitBytes: this.#options.fileBytes, readyBytes: ready, grown };
      file = await JournalFile.open(files, path, sizes);
      await files.syncDirectory(layout.journal);
    } catch (error) {
      await file?.close();
      // It would take the room that others still find. Where this fails too, recovery finds a file that holds nothing.
      await files.unlink(path).catch(() => undefined);
      throw error;
    }
    this.#nextSequence += 1;
    return file;
  }
}
