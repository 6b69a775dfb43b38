import { basename, join } from "node:path";
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

/** Streams made permanent at the same time: few, so that a journal sync never waits for a thread. */
const CONCURRENCY = 3;
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
    await this.#persistAll(file.streams);
    const damaged = [...file.streams].filter(({ damage, deleted }) => damage !== null && !deleted);
    for (const stream of damaged) await this.#noteDamage(stream);
    await writer.syncShards();
    if (this.#stopped) return;
    await file.close();
    if (damaged.length > 0) await this.#setAside(file);
    else await this.#options.journal().retire(file.path);
    await files.syncDirectory(journalDirectory);
    log.debug("checkpoint", { file: file.sequence, streams: file.streams.size, ms: clock.nowMs() - startedMs });
  }

  async #persistAll(streams: ReadonlySet<FileStream>): Promise<void> {
    const { trash, writer } = this.#options;
    const rest = streams.values();
    const worker = async (): Promise<void> => {
      for (const stream of rest) {
        if (this.#stopped) return;
        if (stream.deleted) await trash.removed(stream);
        else if (!stream.isPersisted) await writer.persist(stream);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
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
    await files.syncDirectory(damagedDirectory);
    journal().setAside();
    log.error("a journal file with records of a damaged stream was kept", { file: kept });
  }
}
