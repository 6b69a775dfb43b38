import type { Clock } from "../../../ops/clock.js";
import { Retry } from "../../../ops/retry.js";
import type { FileStream } from "../memory/file-stream.js";
import { isBusy, isDiskFull, isPassing } from "../disk/files.js";
import type { SegmentWriter } from "./segment-writer.js";
import type { TailCache } from "../memory/tail-cache.js";

/** What a flusher works with. */
export interface FlusherOptions {
  readonly writer: SegmentWriter;
  readonly cache: TailCache;
  readonly clock: Clock;
  /** Begins at so many bytes that no segment has, and ends at half of them. */
  readonly flushAtBytes: number;
  readonly fault: (error: Error) => void;
}

/** How soon it is tried again after the disk was full, and after too many files were open. */
const FULL_RETRY_MS = 1000;
const BUSY_RETRY_MS = 100;

/** Writes bytes from memory to their segments before they are too many: those of the streams that have waited longest. */
export class Flusher {
  readonly #options: FlusherOptions;
  /** Streams with bytes that no segment has yet, oldest first. */
  readonly #unwritten = new Set<FileStream>();
  #flushing = false;
  #trouble: unknown = null;
  readonly #retry: Retry;
  #stopped = false;

  constructor(options: FlusherOptions) {
    this.#options = options;
    this.#retry = new Retry(options.clock);
  }

  /** Whether the disk had no room for the bytes that it was last tried with. */
  get lacksRoom(): boolean {
    return isDiskFull(this.#trouble);
  }

  /** Whether no file could be opened for the bytes that it was last tried with. */
  get isBusy(): boolean {
    return isBusy(this.#trouble);
  }

  /** The stream has bytes in memory that no segment has. */
  add(stream: FileStream): void {
    this.#keep(stream);
    if (this.#isDue && !this.#retry.isPending) this.#begin();
  }

  /** Forgets what memory holds of a stream: it is written, or never will be, and nobody reads it there any more. */
  drop(stream: FileStream): void {
    this.#options.cache.drop(stream);
    this.#taken(stream);
  }

  /** Removes the segments of which the stream keeps nothing; what passes is left to the checkpoint. */
  trim(stream: FileStream): void {
    const { writer, fault } = this.#options;
    writer.trim(stream).catch((error: unknown) => {
      if (!isPassing(error)) fault(error instanceof Error ? error : new Error(String(error)));
    });
  }

  /** Begins nothing more. */
  stop(): void {
    this.#stopped = true;
    this.#retry.cancel();
  }

  #keep(stream: FileStream): void {
    // Asked of the stream, which is at hand: a look into a set of thousands is a walk through cold memory.
    if (stream.awaitsFlush) return;
    this.#unwritten.add(stream);
    stream.awaitsFlush = true;
  }

  #taken(stream: FileStream): void {
    this.#unwritten.delete(stream);
    stream.awaitsFlush = false;
  }

  get #isDue(): boolean {
    const { cache, flushAtBytes } = this.#options;
    return cache.unwrittenBytes > flushAtBytes || cache.isOverfull;
  }

  #begin(): void {
    if (this.#flushing || this.#stopped) return;
    this.#flushing = true;
    this.#flush().then(
      () => this.#flushed(),
      (error: unknown) => this.#failed(error),
    );
  }

  async #flush(): Promise<void> {
    const { cache, flushAtBytes, writer } = this.#options;
    for (const stream of this.#unwritten) {
      if (cache.unwrittenBytes <= flushAtBytes / 2 && !cache.isOverfull) return;
      this.#taken(stream);
      try {
        await writer.flush(stream);
        this.#trouble = null;
      } catch (error) {
        this.#keep(stream);
        throw error;
      }
    }
  }

  #flushed(): void {
    this.#flushing = false;
    this.#trouble = null;
  }

  /** The bytes are in the journal, too: what passes is tried again, whether or not anything is appended until then. */
  #failed(error: unknown): void {
    this.#flushing = false;
    if (!isPassing(error)) return this.#options.fault(error instanceof Error ? error : new Error(String(error)));
    this.#trouble = error;
    if (!this.#stopped) this.#retry.after(isBusy(error) ? BUSY_RETRY_MS : FULL_RETRY_MS, () => this.#begin());
  }
}
