import { join } from "node:path";
import type { Clock } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
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
/** How soon a checkpoint that found the disk full is tried again. */
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

  constructor(options: CheckpointOptions) {
    this.#options = options;
  }

  /** Takes a sealed file; resolves when it is done. Never rejects: what fails is a fault of the engine's. */
  add(file: SealedFile): Promise<void> {
    this.#last = this.#last.then(() => this.#run(file));
    return this.#last;
  }

  /** Tries what is left once; resolves when all files are done, or stay in the journal because the disk is full. */
  end(): Promise<void> {
    this.#ending = true;
    return this.#last;
  }

  /** Begins nothing new. */
  stop(): void {
    this.#stopped = true;
  }

  async #run(file: SealedFile): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#checkpoint(file);
        return;
      } catch (error) {
        if (!isPassing(error)) {
          this.#options.fault(error instanceof Error ? error : new Error(String(error)));
          return;
        }
        this.#options.log.warn("the journal can't be freed now", { file: file.path, fault: String(error) });
        // A file that stays keeps those after it: recovery takes the journal without a gap.
        if (this.#ending) return this.stop();
        await new Promise<void>((resolve) => this.#options.clock.after(RETRY_MS, resolve));
      }
    }
  }

  async #checkpoint(file: SealedFile): Promise<void> {
    const { clock, log, writer, files, journalDirectory } = this.#options;
    const startedMs = clock.nowMs();
    const damaged = await this.#persistAll(file.streams);
    await writer.syncShards();
    if (this.#stopped) return;
    await file.close();
    if (damaged) await this.#setAside(file);
    else await this.#options.journal().retire(file.path);
    await files.syncDirectory(journalDirectory);
    log.debug("checkpoint", { file: file.sequence, streams: file.streams.size, ms: clock.nowMs() - startedMs });
  }

  /** Returns whether a stream is damaged, so that its records must be kept where they are. */
  async #persistAll(streams: ReadonlySet<FileStream>): Promise<boolean> {
    const { trash, writer } = this.#options;
    let damaged = false;
    const rest = streams.values();
    const worker = async (): Promise<void> => {
      for (const stream of rest) {
        if (this.#stopped) return;
        if (stream.damage !== null) damaged = true;
        else if (stream.deleted) await trash.removed(stream);
        else if (!stream.isPersisted) await writer.persist(stream);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    return damaged;
  }

  async #setAside(file: SealedFile): Promise<void> {
    const { files, damagedDirectory, log, journal } = this.#options;
    await files.makeDirectory(damagedDirectory);
    const kept = join(damagedDirectory, `${file.sequence}.journal`);
    await files.rename(file.path, kept);
    await files.syncDirectory(damagedDirectory);
    journal().setAside();
    log.error("a journal file with records of a damaged stream was kept", { file: kept });
  }
}
