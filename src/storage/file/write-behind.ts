import type { FileStream } from "./file-stream.js";
import { isPassing } from "./files.js";
import type { SegmentWriter } from "./segment-writer.js";
import type { TailCache } from "./tail-cache.js";

/** What is needed to write behind the journal. */
export interface WriteBehindOptions {
  readonly writer: SegmentWriter;
  readonly cache: TailCache;
  /** Writing begins when more bytes than this wait, and ends at half of it. */
  readonly flushAtBytes: number;
  readonly fault: (error: Error) => void;
}

/** The streams with bytes that no segment has yet: those that have waited longest are written first. */
export class WriteBehind {
  readonly #options: WriteBehindOptions;
  readonly #unwritten = new Set<FileStream>();
  #writing = false;

  constructor(options: WriteBehindOptions) {
    this.#options = options;
  }

  /** Bytes of the stream wait for their segment. */
  add(stream: FileStream): void {
    this.#unwritten.add(stream);
    const { cache, flushAtBytes } = this.#options;
    if (this.#writing || (cache.unwrittenBytes <= flushAtBytes && !cache.isOverfull)) return;
    this.#writing = true;
    void this.#write().finally(() => (this.#writing = false));
  }

  /** Forgets what memory holds of a stream: nobody reads it there any more. */
  drop(stream: FileStream): void {
    const last = stream.cached.blocks.at(-1);
    const unwritten = last === undefined ? 0 : Math.max(0, last.start + last.length - stream.written);
    this.#options.cache.drop(stream, unwritten);
    this.#unwritten.delete(stream);
  }

  async #write(): Promise<void> {
    const { writer, cache, flushAtBytes, fault } = this.#options;
    for (const stream of this.#unwritten) {
      if (cache.unwrittenBytes <= flushAtBytes / 2 && !cache.isOverfull) return;
      this.#unwritten.delete(stream);
      try {
        await writer.flush(stream);
      } catch (error) {
        this.#unwritten.add(stream);
        // What passes is tried again with the next append; the bytes are in the journal.
        if (!isPassing(error)) fault(error instanceof Error ? error : new Error(String(error)));
        return;
      }
    }
  }
}
