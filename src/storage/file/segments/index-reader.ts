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
    const found = searchMemory(index, segment, byte);
    return found ?? this.#searchFile(stream, segment, index, byte);
  }

  async #searchFile(
    stream: FileStream,
    segment: Segment,
    index: AppendIndex,
    byte: number,
  ): Promise<Neighbours | null> {
    const path = indexPath(stream.directory, segment.start);
    try {
      const found = await this.#parts.pool.use(path, "read", async (file) => {
        await compare(file, index);
        return searchBlocks(blocksOf(index, segment, file), index.end, byte);
      });
      index.lastFound = found;
      return found;
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

/** Searches what is in memory; `null` where the byte may be before that. */
function searchMemory(index: AppendIndex, segment: Segment, byte: number): Neighbours | null {
  let low = Math.ceil(index.written / INDEX_BLOCK_BYTES);
  let high = Math.ceil(index.length / INDEX_BLOCK_BYTES) - 1;
  if (low > high || (low > 0 && (baseIn(index, low)?.end ?? Infinity) > byte)) return null;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((baseIn(index, middle)?.end ?? Infinity) <= byte) low = middle;
    else high = middle - 1;
  }
  return neighboursIn(memoryBlock(index, low), low === 0 ? firstBase(segment) : null, byte);
}

function memoryBlock(index: AppendIndex, at: number): Uint8Array {
  return index.bytes(at * INDEX_BLOCK_BYTES, Math.min(index.length, (at + 1) * INDEX_BLOCK_BYTES));
}

function baseIn(index: AppendIndex, at: number): IndexBase | null {
  return baseOf(memoryBlock(index, at));
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
 * Finds the block with a byte, and in it the ends around it. Appends are often of a size: the first steps look where
 * the byte should be by that, the others halve what is left.
 */
async function searchBlocks({ count, first, block }: Blocks, end: number, byte: number): Promise<Neighbours> {
  const MAX_GUESSES = 4;
  let [low, high] = [0, count - 1];
  let [lowEnd, highEnd] = [0, end];
  for (let step = 0; low <= high; step += 1) {
    const guess = low + Math.floor(((high - low + 1) * (byte - lowEnd)) / Math.max(1, highEnd - lowEnd));
    const at = step < MAX_GUESSES ? Math.min(high, Math.max(low, guess)) : Math.ceil((low + high) / 2);
    const bytes = await block(at);
    const base = at === 0 ? first : baseOf(bytes);
    if (base === null) break;
    if (base.end > byte) {
      high = at - 1;
      highEnd = base.end;
      continue;
    }
    const found = neighboursIn(bytes, at === 0 ? first : null, byte);
    if (found !== null) return found;
    low = at + 1;
    lowEnd = base.end;
  }
  throw new LostIndexError("it is not what was written");
}

/** The ends around a byte, where the first after it is in this block. */
function neighboursIn(block: Uint8Array, first: IndexBase | null, byte: number): Neighbours | null {
  let before = first?.end ?? baseOf(block)?.end ?? 0;
  let after = -1;
  scanBlock(block, first, (end) => {
    if (end > byte) after = end;
    else before = end;
    return end <= byte;
  });
  return after === -1 ? null : { before, after };
}
