import { basename, join } from "node:path";
import type { Clock } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import { Retry } from "../../ops/retry.js";
import type { FileStream } from "./file-stream.js";
import { isPassing, type Files } from "./files.js";
import type { Journal } from "./journal.js";
import type { SegmentWriter } from "./segment-writer.js";
import type { Trash } from "./trash.js";

/** A journal file that is no longer written. */
export interface SealedFile {
  readonly sequence: number;
  readonly path: string;
  readonly streams: ReadonlySet<FileStream>;
  close(): Promise<void>;
}

/** What a checkpointer works with. */
export interface CheckpointOptions {
  readonly files: Files;
  readonly writer: SegmentWriter;
  readonly trash: Trash;
  readonly journal: () => Journal;
  readonly journalDirectory: string;
  /** Where a journal file goes whose records can't all be applied. */
  readonly damagedDirectory: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly fault: (error: Error) => void;
}

/** Streams handed to the writer at the same time: it decides how many of them it does at once. */
const CONCURRENCY = 16;
/** How soon a checkpoint that found the disk full, or too many files open, is tried again. */
const RETRY_MS = 1000;

/**
 * Frees the journal: makes everything that a sealed file holds permanent in the streams' own files, then gives the file
 * back. Files are done in order, one at a time.
 */
export class Checkpointer {
  readonly #options: CheckpointOptions;
  #last: Promise<void> = Promise.resolve();
  #stopped = false;
  #ending = false;
  readonly #retry: Retry;

  constructor(options: CheckpointOptions) {
    this.#options = options;
    this.#retry = new Retry(options.clock);
  }

  /**
   * Takes a sealed file, or one to come: `null` leaves it, and those after it, to the next start. Resolves when it is done;
   * never rejects: what fails is a fault of the engine's.
   */
  add(coming: SealedFile | Promise<SealedFile | null>): Promise<void> {
    this.#last = this.#last.then(async () => {
      const file = await coming;
      if (file === null) this.stop();
      else await this.#run(file);
    });
    return this.#last;
  }

  /** Tries what is left once; resolves when all files are done, or stay in the journal because the disk is full. */
  end(): Promise<void> {
    this.#ending = true;
    this.#retry.now();
    return this.#last;
  }

  /** Begins nothing new. */
  stop(): void {
    this.#stopped = true;
    this.#retry.now();
  }

  async #run(file: SealedFile): Promise<void> {
    const { clock, log, journal } = this.#options;
    const startedMs = clock.nowMs();
    let damaged = false;
    // Each is tried until it is done, and never again: a file that is freed may be in use the next moment.
    const steps = [
      async () => void (damaged = await this.#persistAll(file)),
      () => (damaged ? this.#setAside(file) : journal().retire(file.path)),
      () => this.#syncDirectories(damaged),
    ];
    try {
      for (const step of steps) if (!(await this.#complete(step, file))) return;
    } finally {
      journal().checkpointAt(null);
    }
    log.debug("checkpoint", { file: file.sequence, streams: file.streams.size, ms: clock.nowMs() - startedMs });
  }

  /** Tries a step until it is done; false when it is left to the next start. */
  async #complete(step: () => Promise<void>, file: SealedFile): Promise<boolean> {
    while (!this.#stopped) {
      try {
        await step();
        return true;
      } catch (error) {
        const failure = error instanceof Error ? error : new Error(String(error));
        // Nobody waits for the progress of one that has failed.
        this.#options.journal().checkpointAt(null);
        if (!isPassing(failure)) {
          this.#options.fault(failure);
          return false;
        }
        this.#options.log.warn("the journal can't be freed now", { file: file.path, fault: String(failure) });
        await this.#beforeNextTry(failure);
      }
    }
    return false;
  }

  async #beforeNextTry(failure: Error): Promise<void> {
    // A file that stays keeps those after it: recovery takes the journal without a gap.
    if (this.#ending) return this.stop();
    this.#options.journal().checkpointFailed(failure);
    await this.#retry.wait(RETRY_MS);
  }

  /** Makes all that the file holds permanent; returns whether a stream is damaged, so that its records must be kept. */
  async #persistAll(file: SealedFile): Promise<boolean> {
    const { journal, trash, writer } = this.#options;
    const rest = file.streams.values();
    let begun = 0;
    let isOver = false;
    const worker = async (): Promise<void> => {
      for (const stream of rest) {
        if (this.#stopped) return;
        begun += 1;
        // What is under way counts: of a few streams, none ends long before the others.
        if (!isOver) journal().checkpointAt(begun / file.streams.size);
        if (stream.deleted) await trash.removed(stream);
        else if (!stream.isPersisted) await writer.persist(stream);
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
    await writer.syncShards();
    await file.close();
    return harmed.length > 0;
  }

  /** Once its records have left the journal, only the stream's own directory can say that they are missing from it. */
  async #noteDamage(stream: FileStream): Promise<void> {
    if (stream.damage === null || stream.hasNotice) return;
    const { damagedDirectory, log, writer } = this.#options;
    try {
      const { file, problem } = stream.damage;
      await writer.postNotice(stream, `${basename(file)}: ${problem}; what the journal had of it is in ${damagedDirectory}`);
      stream.hasNotice = true;
    } catch (error) {
      if (isPassing(error)) throw error;
      log.error("a stream's directory can't be told that it is damaged", { stream: stream.name, directory: stream.directory, fault: String(error) });
    }
  }

  async #setAside(file: SealedFile): Promise<void> {
    const { files, damagedDirectory, log, journal } = this.#options;
    await files.makeDirectory(damagedDirectory);
    const kept = join(damagedDirectory, `${file.sequence}.journal`);
    await files.rename(file.path, kept);
    journal().setAside();
    log.error("a journal file with records of a damaged stream was kept", { file: kept });
  }

  async #syncDirectories(damaged: boolean): Promise<void> {
    const { files, damagedDirectory, journalDirectory } = this.#options;
    if (damaged) await files.syncDirectory(damagedDirectory);
    await files.syncDirectory(journalDirectory);
  }
}
