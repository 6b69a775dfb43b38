import type { FileStream } from "./file-stream.js";
import { isPassing } from "./files.js";
import type { SegmentWriter } from "./segment-writer.js";
import type { TailCache } from "./tail-cache.js";

/** What the writing behind the journal works with. */
export interface WriteBehindOptions {
  readonly writer: SegmentWriter;
  readonly cache: TailCache;
  /** Bytes that may wait in memory before they are written. */
  readonly flushAtBytes: number;
  readonly fault: (error: Error) => void;
}

/** Brings durable bytes from memory to their segments before too many wait, and removes segments that are no longer kept. */
export class WriteBehind {
  readonly #options: WriteBehindOptions;
  /** Streams with bytes that no segment has yet, oldest first. */
  readonly #unwritten = new Set<FileStream>();
  #flushing = false;

  constructor(options: WriteBehindOptions) {
    this.#options = options;
  }

  /** Notes that bytes of the stream wait. */
  add(stream: FileStream): void {
    this.#unwritten.add(stream);
  }

  /** Forgets a stream whose bytes are written, or never will be. */
  remove(stream: FileStream): void {
    this.#unwritten.delete(stream);
  }

  /** Writes the streams that have waited longest to their segments, if too many bytes wait. */
  relieve(): void {
    const { cache, flushAtBytes } = this.#options;
    if (this.#flushing || (cache.unwrittenBytes <= flushAtBytes && !cache.isOverfull)) return;
    this.#flushing = true;
    void this.#flushOldest().finally(() => (this.#flushing = false));
  }

  /** Removes the segments of which the stream keeps nothing. */
  trim(stream: FileStream): void {
    this.#options.writer.trim(stream).catch((error: unknown) => this.#failed(error));
  }

  async #flushOldest(): Promise<void> {
    const { cache, writer, flushAtBytes } = this.#options;
    for (const stream of this.#unwritten) {
      if (cache.unwrittenBytes <= flushAtBytes / 2 && !cache.isOverfull) return;
      this.#unwritten.delete(stream);
      try {
        await writer.flush(stream);
      } catch (error) {
        this.#unwritten.add(stream);
        return this.#failed(error);
      }
    }
  }

  /** What passes is tried again: by the next append, or by the checkpoint. Until then all of it is in the journal. */
  #failed(error: unknown): void {
    if (!isPassing(error)) this.#options.fault(error instanceof Error ? error : new Error(String(error)));
  }
}
