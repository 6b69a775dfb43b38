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
export interface ServedStream {
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
  stream: ServedStream,
  from: Position,
  maxBytes: number,
  longestBytes: number,
  allocate: Allocate | undefined,
): MaybePromise<Chunk> {
  const { stored, isJson, tail } = stream;
  if (from >= tail) return chunkOf(stream, from, NO_BYTES);
  if (tail - from <= maxBytes) return readUpTo(storage, stream, from, tail, maxBytes, allocate);
  if (isJson) return readUpTo(storage, stream, from, from + maxBytes, maxBytes, allocate);
  return chain(storage.endOfRead(stored, from, maxBytes), (found) => {
    const end = found === null || found - from > Math.max(maxBytes, longestBytes) ? from + maxBytes : found;
    return readUpTo(storage, stream, from, end, end - from, allocate);
  });
}

function readUpTo(
  storage: Storage,
  stream: ServedStream,
  from: Position,
  end: Position,
  maxBytes: number,
  allocate: Allocate | undefined,
): MaybePromise<Chunk> {
  const { stored, isJson } = stream;
  const bytes = storage.read(stored, from, end - from, allocate);
  const enough = Buffer.isBuffer(bytes) && bytes.length === end - from;
  if (enough && (!isJson || end === stream.tail)) return chunkOf(stream, from, bytes);
  return readWhole(storage, stream, from, bytes, isJson ? maxBytes : end - from);
}

/** Reads in several steps: gathers pieces up to `maxBytes`, and in JSON streams ends at the end of a message. */
async function readWhole(
  storage: Storage,
  stream: ServedStream,
  from: Position,
  first: MaybePromise<Buffer>,
  maxBytes: number,
): Promise<Chunk> {
  stream.retain();
  try {
    let bytes = await first;
    let wantedBytes = maxBytes;
    while (from + bytes.length < stream.tail) {
      if (bytes.length >= wantedBytes) {
        const whole = wholePart(stream, bytes);
        if (whole.length > 0) return chunkOf(stream, from, whole);
        wantedBytes *= 2;
      }
      const more = await readMore(storage, stream, from, bytes, wantedBytes);
      if (more === null) return chunkOf(stream, from, wholePart(stream, bytes));
      bytes = Buffer.concat([bytes, more]);
    }
    return chunkOf(stream, from, bytes);
  } finally {
    stream.release();
  }
}

/** Reads what follows `bytes`; `null` when that was dropped or is damaged, and `bytes` alone can be served. */
async function readMore(
  storage: Storage,
  stream: ServedStream,
  from: Position,
  bytes: Buffer,
  wantedBytes: number,
): Promise<Buffer | null> {
  const at = from + bytes.length;
  try {
    return await storage.read(stream.stored, at, Math.min(wantedBytes - bytes.length, stream.tail - at));
  } catch (error) {
    const isLost = error instanceof TrimmedStreamError || error instanceof DamagedStreamError;
    if (isLost && wholePart(stream, bytes).length > 0) return null;
    throw error;
  }
}

/** The part of `bytes` that can be served alone. */
function wholePart({ isJson }: ServedStream, bytes: Buffer): Buffer {
  return isJson ? bytes.subarray(0, wholeMessagesLength(bytes)) : bytes;
}

function chunkOf(stream: ServedStream, from: Position, bytes: Buffer): Chunk {
  const to = from + bytes.length;
  const upToDate = to === stream.tail;
  return { kind: "chunk", from, to, bytes, upToDate, closed: upToDate && stream.closed };
}
