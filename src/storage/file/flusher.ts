import type { Clock, Timer } from "../../ops/clock.js";
import type { FileStream } from "./file-stream.js";
import { isBusy, isDiskFull, isPassing } from "./files.js";
import type { SegmentWriter } from "./segment-writer.js";
import type { TailCache } from "./tail-cache.js";

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
  #retry: Timer | null = null;
  #stopped = false;

  constructor(options: FlusherOptions) {
    this.#options = options;
  }

  /** Whether the disk had no room for the bytes that it was last tried with. */
  get lacksRoom(): boolean {
    return isDiskFull(this.#trouble);
  }

  /** The stream has bytes in memory that no segment has. */
  add(stream: FileStream): void {
    this.#keep(stream);
    if (this.#isDue && this.#retry === null) this.#begin();
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
    this.#retry?.cancel();
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
    void this.#flush().finally(() => (this.#flushing = false));
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
        return this.#failed(error);
      }
    }
  }

  /** The bytes are in the journal, too: what passes is tried again, whether or not anything is appended until then. */
  #failed(error: unknown): void {
    if (!isPassing(error)) return this.#options.fault(error instanceof Error ? error : new Error(String(error)));
    this.#trouble = error;
    if (this.#stopped) return;
    this.#retry = this.#options.clock.after(isBusy(error) ? BUSY_RETRY_MS : FULL_RETRY_MS, () => {
      this.#retry = null;
      this.#begin();
    });
  }
}
