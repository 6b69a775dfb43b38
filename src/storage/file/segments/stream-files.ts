import type { EngineParts } from "../disk/engine-state.js";
import { poolThreads } from "../disk/files.js";
import { TailCache } from "../memory/tail-cache.js";
import { SegmentPool } from "./segment-pool.js";
import { SegmentWriter } from "./segment-writer.js";
import { Trash } from "./trash.js";
import { UnsyncedShards } from "./unsynced-shards.js";

/** What all parts share, with all that brings streams to their own files, and these out of the way. */
export interface StreamFiles extends EngineParts {
  readonly pool: SegmentPool;
  readonly cache: TailCache;
  readonly shards: UnsyncedShards;
  readonly writer: SegmentWriter;
  readonly trash: Trash;
}

/** Sizes in bytes. */
export interface StreamFilesOptions {
  readonly tailCacheBytes: number;
  readonly maxInlineIndexBytes?: number | undefined;
  /** File operations that can be under way at the same time in the whole process. */
  readonly threads?: number;
}

/** Makes them for one directory. */
export function streamFiles(
  parts: EngineParts,
  { tailCacheBytes, maxInlineIndexBytes, threads = poolThreads() }: StreamFilesOptions,
): StreamFiles {
  const pool = new SegmentPool(parts.files);
  const cache = new TailCache(tailCacheBytes);
  const shards = new UnsyncedShards(parts);
  const writer = new SegmentWriter(parts, { pool, cache, shards, threads, maxInlineIndexBytes });
  return { ...parts, pool, cache, shards, writer, trash: new Trash(parts, pool, shards) };
}
