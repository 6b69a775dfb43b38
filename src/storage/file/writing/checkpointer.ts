import { reportCheckpoint } from "../../../ops/diagnostics.js";
import type { Retry } from "../../../ops/retry.js";
import { DamagedStreamError } from "../../storage.js";
import { noticeOf } from "../segments/damage-log.js";
import type { StorageObserver } from "../../figures.js";
import type { FileStream } from "../memory/file-stream.js";
import { errorCode, isPassing, retryMsAfter } from "../disk/files.js";
import type { NameLog } from "../directory/name-log.js";
import type { Journal } from "../journal/journal.js";
import { KeptJournal, type DoneFile } from "../journal/kept-journal.js";
import type { StreamFiles } from "../segments/stream-files.js";

/** A journal file that is no longer written. */
export interface SealedFile extends DoneFile {
  /** Again does nothing more. */
  close(): Promise<void>;
}

/** Streams handed to the writer at the same time: it decides how many of them it does at once. */
const CONCURRENCY = 16;
/** Streams that may be damaged without their directories saying so: they can't leave memory. */
const MAX_UNTOLD = 10_000;

/**
 * Frees the journal: makes everything that a sealed file holds permanent in the streams' own files, then gives the file
 * back. Files are done in order, one at a time.
 */
export class Checkpointer {
  readonly #parts: StreamFiles;
  readonly #journal: Journal;
  readonly #kept: KeptJournal;
  readonly #nameLog: Pick<NameLog, "checkpoint">;
  readonly #observer: StorageObserver | null;
  /** Damaged streams whose directories could not be told. */
  #untold = new Set<FileStream>();
  #last: Promise<void> = Promise.resolve();
  readonly #retry: Retry;

  constructor(parts: StreamFiles, journal: Journal, nameLog: Pick<NameLog, "checkpoint">, observer?: StorageObserver) {
    this.#parts = parts;
    this.#nameLog = nameLog;
    this.#observer = observer ?? null;
    this.#journal = journal;
    this.#retry = parts.state.retry();
    this.#kept = new KeptJournal(parts);
  }

  /**
   * Takes a sealed file, or one to come: `null` leaves it, and those after it, to the next start. Resolves when it is
   * done; never rejects: what fails is a fault of the engine's.
   */
  add(coming: SealedFile | Promise<SealedFile | null>): Promise<void> {
    this.#last = this.#last.then(async () => {
      const file = await coming;
      if (file === null) this.#parts.state.stop();
      else await this.#run(file);
    });
    return this.#last;
  }

  /** Resolves when all files are done, or left to the next start. */
  idle(): Promise<void> {
    return this.#last;
  }

  async #run(file: SealedFile): Promise<void> {
    const { clock, files, layout, log } = this.#parts;
    const journal = this.#journal;
    const startedMs = clock.nowMs();
    let harmed: readonly FileStream[] = [];
    // Each is tried until it is done, and never again: a file that is freed may be in use the next moment.
    const steps = [
      async () => void (harmed = await this.#persistAll(file)),
      () => this.#keep(file, harmed),
      () => this.#nameLog.checkpoint(),
      async () => void (file.isKept === true || (await journal.retire(file.path))),
      () => files.syncDirectory(layout.journal),
    ];
    try {
      for (const step of steps) {
        if (await this.#complete(step, file)) continue;
        await file.close().catch(() => undefined); // the engine ends already, for a reason that was told
        return;
      }
    } finally {
      journal.checkpointAt(null);
    }
    const tookMs = clock.nowMs() - startedMs;
    this.#observer?.checkpointed(tookMs);
    reportCheckpoint(log, file.sequence, file.streams.size, tookMs);
  }

  /** Tries a step until it is done; false when it is left to the next start. */
  async #complete(step: () => Promise<void>, file: SealedFile): Promise<boolean> {
    let told = "";
    while (!this.#parts.state.isOver) {
      try {
        await step();
        this.#parts.state.syncs.progressed();
        return true;
      } catch (error) {
        const failure = error instanceof Error ? error : new Error(String(error));
        this.#parts.state.syncs.progressed();
        // Nobody waits for the progress of one that has failed.
        this.#journal.checkpointAt(null);
        if (!isPassing(failure)) {
          this.#parts.state.fail(failure);
          return false;
        }
        const code = errorCode(failure);
        const fault = String(failure);
        if (code !== told) this.#parts.log.warn("the journal can't be freed now", { file: file.path, fault });
        told = code;
        await this.#beforeNextTry(failure);
      }
    }
    return false;
  }

  async #beforeNextTry(failure: Error): Promise<void> {
    // A file that stays keeps those after it: recovery takes the journal without a gap.
    const { state } = this.#parts;
    if (!state.isRunning) return state.stop();
    state.emit("blocked", failure);
    await this.#retry.wait(retryMsAfter(failure));
  }

  /** Makes all that the file holds permanent; returns the streams that can't take it, so that it must be kept. */
  async #persistAll(file: SealedFile): Promise<readonly FileStream[]> {
    const { shards, trash, writer, state } = this.#parts;
    const rest = file.streams.values();
    let begun = 0;
    let isOver = false;
    const worker = async (): Promise<void> => {
      for (const stream of rest) {
        if (state.isOver) return;
        begun += 1;
        // What is under way counts: of a few streams, none ends long before the others.
        if (!isOver) this.#journal.checkpointAt(begun / file.streams.size);
        if (stream.deleted) await trash.removed(stream);
        else if (!stream.isPersisted) await writer.persist(stream);
        state.syncs.progressed();
      }
    };
    try {
      await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    } finally {
      // Where one failed, the others go on with what is left, and tell nothing of it.
      isOver = true;
    }
    const harmed = [...file.streams].filter(({ damage, deleted }) => damage !== null && !deleted);
    for (const stream of harmed) await this.#noteDamage(stream);
    await shards.sync();
    await file.close();
    return harmed;
  }

  async #keep(file: SealedFile, harmed: readonly FileStream[]): Promise<void> {
    const { layout, log } = this.#parts;
    await this.#kept.keep(file, harmed);
    if (harmed.length > 0)
      log.error("records of damaged streams are kept in the journal", {
        streams: harmed.length,
        file: layout.keptJournalFile(file.sequence),
      });
  }

  /** Has the stream's own directory say what is missing from it: then the stream may leave memory. */
  async #noteDamage(stream: FileStream): Promise<void> {
    if (stream.damage === null || stream.disk.hasNotice) return;
    const { log } = this.#parts;
    try {
      await this.#parts.writer.postNotice(stream, noticeOf(stream.damage));
      this.#untold.delete(stream);
    } catch (error) {
      // Whatever keeps its files from being written may keep this from them, too.
      if (!(error instanceof DamagedStreamError)) throw error;
      if (!this.#untold.has(stream))
        log.error("a stream's directory can't be told that it is damaged", {
          stream: stream.name,
          directory: stream.directory,
          fault: error.message,
        });
      this.#noteUntold(stream);
    }
  }

  #noteUntold(stream: FileStream): void {
    this.#untold.add(stream);
    if (this.#untold.size <= MAX_UNTOLD) return;
    this.#untold = new Set([...this.#untold].filter(({ deleted }) => !deleted));
    if (this.#untold.size > MAX_UNTOLD)
      throw new Error(`more than ${MAX_UNTOLD} streams' directories can't be written: ${stream.damage?.message}`);
  }
}
