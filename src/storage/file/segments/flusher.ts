import type { Retry } from "../../../ops/retry.js";
import type { EngineState } from "../disk/engine-state.js";
import type { FileStream } from "../memory/file-stream.js";
import { isBusy, isDiskFull, isPassing, retryMsAfter } from "../disk/files.js";
import type { SegmentWriter } from "./segment-writer.js";
import type { StreamFiles } from "./stream-files.js";
import type { TailCache } from "../memory/tail-cache.js";

/** Writes bytes from memory to their segments before they are too many, the longest waiting streams first. */
export class Flusher {
  readonly #state: EngineState;
  readonly #writer: SegmentWriter;
  readonly #cache: TailCache;
  readonly #flushAtBytes: number;
  /** Streams with bytes that no segment has yet, oldest first. */
  readonly #unwritten = new Set<FileStream>();
  #flushing = false;
  #trouble: unknown = null;
  readonly #retry: Retry;

  /** It begins at `flushAtBytes` that no segment has, and ends at half of them. */
  constructor({ state, writer, cache }: StreamFiles, flushAtBytes: number) {
    this.#state = state;
    this.#writer = writer;
    this.#cache = cache;
    this.#flushAtBytes = flushAtBytes;
    this.#retry = state.retry();
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
    if (this.#isDue && !this.#retry.isPending) this.#flushSoon();
  }

  /** Forgets what memory holds of a stream: it is written, or never will be, and nobody reads it there any more. */
  drop(stream: FileStream): void {
    this.#cache.drop(stream);
    this.#taken(stream);
  }

  /** Removes the segments of which the stream keeps nothing; what passes is left to the checkpoint. */
  trim(stream: FileStream): void {
    this.#writer.trim(stream).catch((error: unknown) => {
      if (!isPassing(error)) this.#state.fail(error);
    });
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
    return this.#cache.unwrittenBytes > this.#flushAtBytes || this.#cache.isOverfull;
  }

  #flushSoon(): void {
    if (this.#flushing || !this.#state.isRunning) return;
    this.#flushing = true;
    this.#flush().then(
      () => this.#flushed(),
      (error: unknown) => this.#failed(error),
    );
  }

  async #flush(): Promise<void> {
    for (const stream of this.#unwritten) {
      // A stop leaves the rest to the last checkpoint.
      if (!this.#state.isRunning) return;
      if (this.#cache.unwrittenBytes <= this.#flushAtBytes / 2 && !this.#cache.isOverfull) return;
      this.#taken(stream);
      try {
        await this.#writer.flush(stream);
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
    if (!isPassing(error)) return this.#state.fail(error);
    this.#trouble = error;
    if (isDiskFull(error)) this.#state.emit("full");
    if (this.#state.isRunning) this.#retry.after(retryMsAfter(error), () => this.#flushSoon());
  }
}
