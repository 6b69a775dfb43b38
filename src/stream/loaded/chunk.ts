import { wholeMessagesLength } from "../../protocol/json/json-frame.js";
import {
  DamagedStreamError,
  TrimmedStreamError,
  type Allocate,
  type MaybePromise,
  type Position,
  type Storage,
  type StoredStream,
} from "../../storage/storage.js";
import { chain } from "./chain.js";

/** A piece of a stream, ready to serve: `bytes` is `from..to` as stored. JSON streams end at a whole message. */
export interface Chunk {
  readonly kind: "chunk";
  readonly from: Position;
  readonly to: Position;
  readonly bytes: Buffer;
  /** Whether `to` was the tail when the chunk was made. */
  readonly upToDate: boolean;
  /** Whether the stream is closed and `to` is its end. */
  readonly closed: boolean;
}

/** A stream to read chunks from. */
export interface ChunkSource {
  readonly stored: StoredStream;
  readonly isJson: boolean;
  /** End of the durable bytes. */
  readonly tail: Position;
  readonly closed: boolean;
  retain(): void;
  release(): void;
}

const NO_BYTES = Buffer.alloc(0);

/**
 * Reads about `maxBytes` durable bytes from `from` on, up to the end of an append or of a JSON message. An append of
 * bytes that is longer than `longestBytes` is cut at `maxBytes`; any other is read whole. `allocate` gives memory for
 * bytes from the disk, which nobody else keeps. Throws what `Storage.read` throws.
 */
export function readChunk(
  storage: Storage,
  source: ChunkSource,
  from: Position,
  maxBytes: number,
  longestBytes: number,
  allocate: Allocate | undefined,
): MaybePromise<Chunk> {
  const { stored, isJson, tail } = source;
  if (from >= tail) return chunkOf(source, from, NO_BYTES);
  if (tail - from <= maxBytes) return readUpTo(storage, source, from, tail, maxBytes, allocate);
  if (isJson) return readUpTo(storage, source, from, from + maxBytes, maxBytes, allocate);
  return chain(storage.endOfRead(stored, from, maxBytes), (found) => {
    const end = found === null || found - from > Math.max(maxBytes, longestBytes) ? from + maxBytes : found;
    return readUpTo(storage, source, from, end, end - from, allocate);
  });
}

function readUpTo(
  storage: Storage,
  source: ChunkSource,
  from: Position,
  end: Position,
  maxBytes: number,
  allocate: Allocate | undefined,
): MaybePromise<Chunk> {
  const { stored, isJson } = source;
  const bytes = storage.read(stored, from, end - from, allocate);
  const enough = Buffer.isBuffer(bytes) && bytes.length === end - from;
  if (enough && (!isJson || end === source.tail)) return chunkOf(source, from, bytes);
  return readWhole(storage, source, from, bytes, isJson ? maxBytes : end - from);
}

/** Reads in several steps: gathers pieces up to `maxBytes`, and in JSON streams ends at the end of a message. */
async function readWhole(
  storage: Storage,
  source: ChunkSource,
  from: Position,
  first: MaybePromise<Buffer>,
  maxBytes: number,
): Promise<Chunk> {
  source.retain();
  try {
    let bytes = await first;
    let wantedBytes = maxBytes;
    while (from + bytes.length < source.tail) {
      if (bytes.length >= wantedBytes) {
        const whole = wholePart(source, bytes);
        if (whole.length > 0) return chunkOf(source, from, whole);
        wantedBytes *= 2;
      }
      const more = await readMore(storage, source, from, bytes, wantedBytes);
      if (more === null) return chunkOf(source, from, wholePart(source, bytes));
      bytes = Buffer.concat([bytes, more]);
    }
    return chunkOf(source, from, bytes);
  } finally {
    source.release();
  }
}

/** Reads what follows `bytes`; `null` when that was dropped or is damaged, and `bytes` alone can be served. */
async function readMore(
  storage: Storage,
  source: ChunkSource,
  from: Position,
  bytes: Buffer,
  wantedBytes: number,
): Promise<Buffer | null> {
  const at = from + bytes.length;
  try {
    return await storage.read(source.stored, at, Math.min(wantedBytes - bytes.length, source.tail - at));
  } catch (error) {
    const isLost = error instanceof TrimmedStreamError || error instanceof DamagedStreamError;
    if (isLost && wholePart(source, bytes).length > 0) return null;
    throw error;
  }
}

/** The part of `bytes` that can be served alone. */
function wholePart({ isJson }: ChunkSource, bytes: Buffer): Buffer {
  return isJson ? bytes.subarray(0, wholeMessagesLength(bytes)) : bytes;
}

function chunkOf(source: ChunkSource, from: Position, bytes: Buffer): Chunk {
  const to = from + bytes.length;
  const upToDate = to === source.tail;
  return { kind: "chunk", from, to, bytes, upToDate, closed: upToDate && source.closed };
}
