import type { Position } from "../../storage.js";
import { MAX_INLINE_INDEX_BYTES, UNKNOWN_INDEX, type AppendIndex, type StoredIndex } from "../format/append-index.js";
import { crc32 } from "../format/crc32.js";
import type { FileStream } from "../memory/file-stream.js";
import { writeOrCutOff } from "../disk/files.js";
import { indexPath } from "../format/layout.js";
import type { Segment } from "../memory/segment.js";
import type { SegmentPool } from "./segment-pool.js";
import type { StoredSegment } from "../format/sidecar.js";

/** An index, and how far it was at a time. */
export interface MarkedIndex {
  readonly start: Position;
  readonly index: AppendIndex | null;
  readonly mark: StoredSegment["index"];
}

/**
 * Writes the indexes of appends that are too long for a sidecar to files of their own. The directory is there, and
 * nothing else writes the stream's files meanwhile.
 */
export class IndexWriter {
  readonly #pool: SegmentPool;
  readonly #maxInlineBytes: number;

  /** Indexes up to `maxInlineBytes` are in sidecars. */
  constructor(pool: SegmentPool, maxInlineBytes = MAX_INLINE_INDEX_BYTES) {
    this.#pool = pool;
    this.#maxInlineBytes = maxInlineBytes;
  }

  /** Writes an index up to its byte `limit` to its file. Nothing is synced. */
  async flush(stream: FileStream, segmentStart: Position, index: AppendIndex, limit: number): Promise<void> {
    if (index.written >= limit) return;
    const { buffer, byteOffset, byteLength } = index.bytes(index.written, limit);
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    await this.#pool.use(indexPath(stream.directory, segmentStart), "write", async (file) => {
      index.isUnsynced = true;
      await writeOrCutOff(file, bytes, index.written);
    });
    index.noteWritten(limit, crc32(bytes, index.crc));
  }

  /** How far the indexes of a stream's segments are: short ones whole, others without their file's checksum. */
  marksOf(stream: FileStream): readonly MarkedIndex[] {
    return stream.segments.map(({ start, index }) => ({ start, index, mark: this.#markOf(index) }));
  }

  /** Brings indexes to their files as far as they were marked; returns them as the sidecar has them, by start. */
  async flushAll(
    stream: FileStream,
    marked: readonly MarkedIndex[],
  ): Promise<ReadonlyMap<Position, StoredSegment["index"]>> {
    const entries = new Map<Position, StoredSegment["index"]>();
    for (const { start, index, mark } of marked) {
      if (index === null || mark === null || mark === "one" || mark.inline !== null) {
        entries.set(start, mark);
        continue;
      }
      await this.flush(stream, start, index, mark.length);
      entries.set(start, { ...mark, crc: index.crc });
    }
    return entries;
  }

  /** Makes what was written permanent, but for the files' directory entries; returns the segments it is of. */
  async sync(stream: FileStream): Promise<readonly Segment[]> {
    const indexed = stream.segments.filter(({ index }) => index?.isUnsynced === true);
    for (const { start } of indexed)
      await this.#pool.use(indexPath(stream.directory, start), "write", (file) => file.sync());
    return indexed;
  }

  /** An index as a sidecar has it now, but for the checksum of its file. */
  #markOf(index: AppendIndex | null): StoredIndex | "one" | null {
    if (index === null) return "one";
    if (index === UNKNOWN_INDEX) return null;
    const { messages, atMs, length } = index.mark;
    const isInline = index.written === 0 && length <= this.#maxInlineBytes;
    return { messages, atMs, length, inline: isInline ? index.bytes(0, length).slice() : null, crc: 0 };
  }
}
