import { StorageBusyError, type MaybePromise } from "../../storage.js";
import {
  baseOf,
  INDEX_BLOCK_BYTES,
  scanBlock,
  UNKNOWN_INDEX,
  type AppendIndex,
  type IndexBase,
  type Neighbours,
} from "../format/append-index.js";
import type { FileStream } from "../memory/file-stream.js";
import { isBusy, readFully, type OpenFile } from "../disk/files.js";
import { indexPath } from "../format/layout.js";
import type { Segment } from "../memory/segment.js";
import type { StreamFiles } from "./stream-files.js";
import { crcOf } from "./segment-reader.js";

/** Blocks of an index, as a search wants them. */
interface Blocks {
  readonly count: number;
  /** What the first block, which does not say it itself, begins with. */
  readonly first: IndexBase;
  readonly block: (at: number) => Uint8Array | Promise<Uint8Array>;
}

/** What an index is searched by: all three go up from append to append, times perhaps not by much. */
export type IndexKey = keyof IndexBase;

/** An append as a search finds it: what the index says before it, and at its end. */
export interface FoundAppend {
  readonly before: IndexBase;
  readonly after: IndexBase;
}

/** Finds where appends end: in memory what is not in a file yet, in the segment's index file the rest. */
export class IndexReader {
  readonly #parts: Pick<StreamFiles, "pool" | "log">;

  constructor(parts: Pick<StreamFiles, "pool" | "log">) {
    this.#parts = parts;
  }

  /**
   * The ends of appends around a byte of a segment, which has it; `null` where they are not known. An index that is not
   * what was written is logged and given up: the segment's bytes are sound without it. Throws {@link StorageBusyError}.
   */
  around(stream: FileStream, segment: Segment, byte: number): MaybePromise<Neighbours | null> {
    const { index } = segment;
    if (index === null) return { before: 0, after: segment.length };
    if (index === UNKNOWN_INDEX) return null;
    const { lastFound } = index;
    if (lastFound !== null && lastFound.before <= byte && byte < lastFound.after) return lastFound;
    const found = searchMemory(index, segment, "end", byte);
    if (found !== null) return neighboursOf(found);
    return this.#searchFile(stream, segment, index, "end", byte).then((append) => {
      if (append === null) return null;
      index.lastFound = neighboursOf(append);
      return index.lastFound;
    });
  }

  /**
   * The first append of a segment at whose end `key` is more than `value`: not yet at the segment's start, and
   * certainly at its end. `null` where that is not known. A few reads find it, however many appends there are. Throws
   * {@link StorageBusyError}.
   */
  firstAbove(stream: FileStream, segment: Segment, key: IndexKey, value: number): MaybePromise<FoundAppend | null> {
    const { index } = segment;
    const last = lastOf(segment);
    if (last === null) return null;
    if (index === null) return { before: firstBase(segment), after: last };
    return searchMemory(index, segment, key, value) ?? this.#searchFile(stream, segment, index, key, value);
  }

  async #searchFile(
    stream: FileStream,
    segment: Segment,
    index: AppendIndex,
    key: IndexKey,
    value: number,
  ): Promise<FoundAppend | null> {
    const path = indexPath(stream.directory, segment.start);
    try {
      return await this.#parts.pool.use(path, "read", async (file) => {
        await compare(file, index);
        return searchBlocks(blocksOf(index, segment, file), key, index.mark[key], value);
      });
    } catch (error) {
      if (isBusy(error)) throw new StorageBusyError(`${path} can't be opened now`, { cause: error });
      if (segment.index !== index || stream.deleted) return null;
      segment.index = UNKNOWN_INDEX;
      this.#parts.log.error("the index of a segment is lost: reads may end within an append", {
        stream: stream.name,
        file: path,
        fault: String(error),
      });
      return null;
    }
  }
}

/** An index that is not what was written. */
class LostIndexError extends Error {
  override readonly name = "LostIndexError";
}

/** What another process wrote is compared with its CRC before it is believed. */
async function compare(file: OpenFile, index: AppendIndex): Promise<void> {
  const { unchecked } = index;
  if (unchecked === null) return;
  if ((await crcOf(file, unchecked.length)) !== unchecked.crc) throw new LostIndexError("it is not what was written");
  index.unchecked = null;
}

/** What the index of a segment says at its end; `null` where it is lost. */
export function lastOf({ index, length, newestAtMs }: Segment): IndexBase | null {
  if (index === null) return { end: length, atMs: newestAtMs, messages: 1 };
  return index === UNKNOWN_INDEX ? null : index.mark;
}

function neighboursOf({ before, after }: FoundAppend): Neighbours {
  return { before: before.end, after: after.end };
}

/** Searches what is in memory; `null` where the append may be before that. */
function searchMemory(index: AppendIndex, segment: Segment, key: IndexKey, value: number): FoundAppend | null {
  const keyIn = (at: number): number => baseOf(memoryBlock(index, at))?.[key] ?? Infinity;
  let low = Math.ceil(index.written / INDEX_BLOCK_BYTES);
  let high = Math.ceil(index.length / INDEX_BLOCK_BYTES) - 1;
  if (low > high || (low > 0 && keyIn(low) > value)) return null;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (keyIn(middle) <= value) low = middle;
    else high = middle - 1;
  }
  return firstIn(memoryBlock(index, low), low === 0 ? firstBase(segment) : null, key, value);
}

function memoryBlock(index: AppendIndex, at: number): Uint8Array {
  return index.bytes(at * INDEX_BLOCK_BYTES, Math.min(index.length, (at + 1) * INDEX_BLOCK_BYTES));
}

function firstBase({ firstAtMs }: Segment): IndexBase {
  return { end: 0, atMs: firstAtMs, messages: 0 };
}

/** Blocks that are at least partly in the file. What is in memory is taken now: it may go to the file meanwhile. */
function blocksOf(index: AppendIndex, segment: Segment, file: OpenFile): Blocks {
  const { written } = index;
  const count = Math.ceil(written / INDEX_BLOCK_BYTES);
  const rest = index.bytes(written, Math.max(written, Math.min(index.length, count * INDEX_BLOCK_BYTES)));
  const block = async (at: number): Promise<Uint8Array> => {
    const start = at * INDEX_BLOCK_BYTES;
    const length = Math.min(INDEX_BLOCK_BYTES, written - start);
    const bytes = await readFully(file, start, length);
    if (bytes.length < length)
      throw new LostIndexError(`it ends at byte ${start + bytes.length}, before byte ${start + length}`);
    return at === count - 1 && rest.length > 0 ? Buffer.concat([bytes, rest]) : bytes;
  };
  return { count, first: firstBase(segment), block };
}

/**
 * Finds the block with the first append above a value, and in it that append. Appends are often of a size: the first
 * steps look where it should be by that, the others halve what is left. `last` is the key at the segment's end.
 */
async function searchBlocks(
  { count, first, block }: Blocks,
  key: IndexKey,
  last: number,
  value: number,
): Promise<FoundAppend> {
  const MAX_GUESSES = 4;
  let [low, high] = [0, count - 1];
  let [lowKey, highKey] = [first[key], last];
  for (let step = 0; low <= high; step += 1) {
    const guess = low + Math.floor(((high - low + 1) * (value - lowKey)) / Math.max(1, highKey - lowKey));
    const at = step < MAX_GUESSES ? Math.min(high, Math.max(low, guess)) : Math.ceil((low + high) / 2);
    const bytes = await block(at);
    const base = at === 0 ? first : baseOf(bytes);
    if (base === null) break;
    if (base[key] > value) {
      high = at - 1;
      highKey = base[key];
      continue;
    }
    const found = firstIn(bytes, at === 0 ? first : null, key, value);
    if (found !== null) return found;
    low = at + 1;
    lowKey = base[key];
  }
  throw new LostIndexError("it is not what was written");
}

/** The first append of a block above a value; `null` where there is none in this block. */
function firstIn(block: Uint8Array, first: IndexBase | null, key: IndexKey, value: number): FoundAppend | null {
  const base = first ?? baseOf(block);
  if (base === null) return null;
  // Plain numbers: a block has a thousand appends.
  const before = { ...base };
  const after = { ...base };
  let isFound = false;
  scanBlock(block, first, (end, atMs, messages) => {
    const reached = key === "end" ? end : key === "atMs" ? atMs : messages;
    isFound = reached > value;
    const target = isFound ? after : before;
    target.end = end;
    target.atMs = atMs;
    target.messages = messages;
    return !isFound;
  });
  return isFound ? { before, after } : null;
}
