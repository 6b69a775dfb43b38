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
import type { ReadClient } from "../rules/scan-turns.js";
import { chain } from "./chain.js";
import type { ReadRoom } from "./read-room.js";

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

/** What is read with. */
export interface ReadParts {
  readonly storage: Storage;
  readonly readRoom: ReadRoom;
}

/** Room for a JSON message of which nobody knows how long it is, with the copies that it is put together from. */
const LONG_MESSAGE_BYTES = 48 * 1024 * 1024;

/** What a chunk of bytes may be, in bytes; JSON streams have whole messages. */
export interface ChunkBounds {
  /** An append that is longer is cut. */
  readonly longestBytes: number;
  /** What a chunk before the last has at least: an append is cut where whole ones would give less. */
  readonly leastBytes: number;
}

/** Every append is whole. */
const UNCUT: ChunkBounds = { longestBytes: Infinity, leastBytes: 0 };

/** How to read, and for whom. */
export interface ReadOptions {
  /** Gives memory for most bytes from the disk, which nobody else keeps. */
  readonly allocate?: Allocate | undefined;
  /** Every append is whole without them. */
  readonly bounds?: ChunkBounds;
  /** Once it has gone, no read that waits for memory is begun for it; without one each is. */
  readonly client?: ReadClient;
}

/**
 * Reads about `maxBytes` durable bytes from `from` on, up to the end of an append or of a JSON message. An append of
 * bytes that is cut for its `bounds` ends at `maxBytes`; any other is read whole. Throws what `Storage.read` throws,
 * and StorageBusyError where too many reads wait for memory or the client has gone.
 */
export function readChunk(
  parts: ReadParts,
  stream: ServedStream,
  from: Position,
  maxBytes: number,
  options: ReadOptions,
): MaybePromise<Chunk> {
  const { stored, isJson, tail } = stream;
  if (from >= tail) return chunkOf(stream, from, NO_BYTES);
  if (isJson) return readMessages(parts, stream, from, maxBytes, options);
  if (tail - from <= maxBytes) return readTo(parts, stream, from, tail, options);
  const { longestBytes, leastBytes } = options.bounds ?? UNCUT;
  const readFound = (found: Position | null): MaybePromise<Chunk> => {
    const isFit = (bytes: number): boolean => bytes >= leastBytes && bytes <= Math.max(maxBytes, longestBytes);
    return readTo(parts, stream, from, found !== null && isFit(found - from) ? found : from + maxBytes, options);
  };
  const end = parts.storage.endOfRead(stored, from, maxBytes);
  if (!(end instanceof Promise)) return readFound(end);
  stream.retain();
  return end.then(readFound).finally(() => stream.release());
}

/** Reads bytes up to `end`. */
function readTo(
  { storage, readRoom }: ReadParts,
  stream: ServedStream,
  from: Position,
  end: Position,
  { allocate, client }: ReadOptions,
): MaybePromise<Chunk> {
  const length = end - from;
  return readRoom.use(stream, length, client, () => {
    const bytes = storage.read(stream.stored, from, length, allocate);
    const isAll = Buffer.isBuffer(bytes) && bytes.length === length;
    return isAll ? chunkOf(stream, from, bytes) : gather(storage, stream, from, { first: bytes, bytes: length }, true);
  });
}

/** Reads messages: all that end in `maxBytes`, or the first one. */
function readMessages(
  { storage, readRoom }: ReadParts,
  stream: ServedStream,
  from: Position,
  maxBytes: number,
  { allocate, client }: ReadOptions,
): MaybePromise<Chunk> {
  const length = Math.min(maxBytes, stream.tail - from);
  const found = readRoom.use(stream, length, client, () => {
    const first = storage.read(stream.stored, from, length, allocate);
    const isAll = Buffer.isBuffer(first) && from + first.length === stream.tail;
    return isAll ? chunkOf(stream, from, first) : gather(storage, stream, from, { first, bytes: maxBytes }, false);
  });
  // Its beginning is read again: who waits for more room holds none.
  const readLong = (): MaybePromise<Chunk> =>
    readRoom.use(stream, LONG_MESSAGE_BYTES, client, () => {
      const first = storage.read(stream.stored, from, Math.min(2 * maxBytes, stream.tail - from));
      return gather(storage, stream, from, { first, bytes: 2 * maxBytes }, true);
    });
  return chain(found, (chunk) => chunk ?? readLong());
}

/** What is gathered: its first bytes, and how many are enough. */
interface Gathered {
  readonly first: MaybePromise<Buffer>;
  readonly bytes: number;
}

/**
 * Reads in several steps, and in JSON streams ends at the end of a message. One that is longer than what is enough is
 * read on where it `mayGrow`; otherwise there is `null`.
 */
function gather(storage: Storage, stream: ServedStream, from: Position, what: Gathered, mayGrow: true): Promise<Chunk>;
function gather(
  storage: Storage,
  stream: ServedStream,
  from: Position,
  what: Gathered,
  mayGrow: boolean,
): Promise<Chunk | null>;
async function gather(
  storage: Storage,
  stream: ServedStream,
  from: Position,
  what: Gathered,
  mayGrow: boolean,
): Promise<Chunk | null> {
  stream.retain();
  try {
    let bytes = await what.first;
    let wantedBytes = what.bytes;
    while (from + bytes.length < stream.tail) {
      if (bytes.length >= wantedBytes) {
        const whole = wholePart(stream, bytes);
        if (whole.length > 0) return chunkOf(stream, from, whole);
        if (!mayGrow) return null;
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
