import type { Position } from "../../storage.js";
import { SpareBlocks } from "./spare-blocks.js";

/** Bytes of whole appends that follow each other in one segment. */
interface TailBlock {
  readonly start: Position;
  readonly segmentStart: Position;
  /** Room for more than `length`: the bytes that are there never change. */
  bytes: Buffer;
  length: number;
  /** The CRC-32 of bytes that are in their segment already, `null` for those that have yet to be written. */
  readonly writtenCrc: number | null;
  /** Whether somebody else may hold the memory: who handed the bytes in, or who reads them. */
  isShared: boolean;
}

/** A run of bytes that is ready to be written to its segment, or is there already (`writtenCrc`). */
export interface PendingRun {
  readonly position: Position;
  readonly segmentStart: Position;
  readonly bytes: Buffer;
  readonly writtenCrc: number | null;
}

/** One for all streams without cached bytes; never written to. */
const NO_BLOCKS: TailBlock[] = [];

/** `list` with `item` at its end. A first item gets a list of its own size, where `push` would make room for 17. */
export function appended<T>(list: T[], item: T): T[] {
  if (list.length === 0) return [item];
  list.push(item);
  return list;
}

/** The newest bytes of one stream. */
export class CachedTail {
  blocks: TailBlock[] = NO_BLOCKS;
  /** The newest block, where appends go: at hand without the list. */
  last: TailBlock | undefined;

  /** Where the cached bytes begin; `Infinity` when there are none. */
  get start(): Position {
    return this.blocks[0]?.start ?? Infinity;
  }

  add(block: TailBlock): void {
    this.blocks = appended(this.blocks, block);
    this.last = block;
  }

  /** Forgets the oldest `count` blocks. */
  forget(count: number): void {
    if (count === 0) return;
    const isAll = count === this.blocks.length;
    this.blocks = isAll ? NO_BLOCKS : this.blocks.slice(count);
    if (isAll) this.last = undefined;
  }

  /** Cached bytes from `from` on, at most `maxBytes`, ending with an append where they end early. */
  read(from: Position, maxBytes: number): Buffer {
    for (let index = this.blocks.length - 1; index >= 0; index -= 1) {
      const block = this.blocks[index];
      if (block === undefined || block.start > from) continue;
      const offset = from - block.start;
      block.isShared = true;
      return block.bytes.subarray(offset, Math.min(offset + maxBytes, block.length));
    }
    throw new RangeError(`position ${from} is before the cached bytes`);
  }

  /** The next run at `from` to go to a segment, up to `limit`. */
  pendingRun(from: Position, limit: Position): PendingRun {
    const block = this.blocks.find((candidate) => candidate.start + candidate.length > from);
    if (block === undefined || block.start > from) throw new RangeError(`position ${from} is not cached`);
    const { segmentStart, writtenCrc } = block;
    const bytes = block.bytes.subarray(from - block.start, Math.min(block.length, limit - block.start));
    return { position: from, segmentStart, bytes, writtenCrc };
  }
}

/** A stream, as far as the cache keeps its bytes. */
export interface CachedStream {
  readonly cached: CachedTail;
  /** Bytes before this are in segment files and may leave the cache. */
  readonly written: Position;
}

const MIN_BLOCK_BYTES = 128;
const MAX_BLOCK_BYTES = 64 * 1024;
const SLAB_BYTES = 16 * 1024;
/** A payload of this size is a block of its own, without a copy. */
const OWN_BLOCK_BYTES = 16 * 1024;

/**
 * The newest bytes of all streams, up to a number of bytes: reads near the tail never touch a file. Bytes that no
 * segment has yet stay, whatever the bound; the engine writes them before they are too many.
 */
export class TailCache {
  readonly #maxBytes: number;
  /** Streams whose first block has been written and may go, least recently used first. */
  readonly #evictable = new Set<CachedStream>();
  #bytes = 0;
  #unwrittenBytes = 0;
  #slab = Buffer.alloc(0);
  #slabUsed = SLAB_BYTES;
  readonly #spares = new SpareBlocks(MAX_BLOCK_BYTES);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether the cache holds more than it should because too much of it waits for its segments. */
  get isOverfull(): boolean {
    return this.#bytes > this.#maxBytes;
  }

  /** Memory held by blocks. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes that no segment has yet. */
  get unwrittenBytes(): number {
    return this.#unwrittenBytes;
  }

  /** Adds the bytes at `position`, the end of what the stream has. */
  append(stream: CachedStream, segmentStart: Position, position: Position, payload: Buffer): void {
    this.#unwrittenBytes += payload.length;
    const { last } = stream.cached;
    const fits =
      last !== undefined &&
      last.segmentStart === segmentStart &&
      last.writtenCrc === null &&
      last.start + last.length === position &&
      payload.length < OWN_BLOCK_BYTES &&
      last.length + payload.length <= MAX_BLOCK_BYTES;
    if (fits) this.#extend(last, payload);
    else this.#push(stream, segmentStart, position, payload, null);
    this.#keepBound();
  }

  /** Adds bytes that are in their segment already. */
  appendWritten(stream: CachedStream, segmentStart: Position, position: Position, payload: Buffer, crc: number): void {
    this.#unwrittenBytes += payload.length;
    this.#push(stream, segmentStart, position, payload, crc);
    this.#keepBound();
  }

  /**
   * Keeps a copy of bytes that were read from a segment and end at the stream's tail: who reads a short stream, or the
   * end of a long one, is seldom alone. They may go at any time.
   */
  keep(stream: CachedStream, segmentStart: Position, position: Position, read: Buffer): void {
    const { length } = read;
    const bytes = this.#blockOf(length);
    bytes.set(read);
    stream.cached.add({ start: position, segmentStart, bytes, length, writtenCrc: null, isShared: false });
    this.#bytes += length;
    this.#evictable.add(stream);
    this.#keepBound();
  }

  /** Somebody reads the stream: among those that may lose their bytes it comes last. */
  used(stream: CachedStream): void {
    if (this.#evictable.delete(stream)) this.#evictable.add(stream);
  }

  /** `length` more bytes of the stream are in their segment. */
  noteWritten(stream: CachedStream, length: number): void {
    this.#unwrittenBytes -= length;
    if (mayEvict(stream)) this.#evictable.add(stream);
    this.#keepBound();
  }

  /** Forgets all of a stream's bytes: those that no segment has will never be in one. */
  drop(stream: CachedStream): void {
    const { last, blocks } = stream.cached;
    if (last !== undefined) this.#unwrittenBytes -= Math.max(0, last.start + last.length - stream.written);
    for (const block of blocks) this.#bytes -= block.bytes.length;
    stream.cached.forget(blocks.length);
    this.#evictable.delete(stream);
  }

  /** Forgets a stream's bytes before `position`, where a segment ends, whether they are in their segment or not. */
  dropBefore(stream: CachedStream, position: Position): void {
    let dropped = 0;
    for (const { start, bytes, length } of stream.cached.blocks) {
      if (start >= position) break;
      this.#bytes -= bytes.length;
      this.#unwrittenBytes -= Math.max(0, start + length - Math.max(start, stream.written));
      dropped += 1;
    }
    stream.cached.forget(dropped);
    if (!mayEvict(stream)) this.#evictable.delete(stream);
  }

  get #roomBytes(): number {
    return this.#maxBytes - this.#bytes;
  }

  #extend(block: TailBlock, payload: Buffer): void {
    const needed = block.length + payload.length;
    if (needed > block.bytes.length) {
      const grown = this.#blockOf(Math.min(MAX_BLOCK_BYTES, Math.max(needed, block.bytes.length * 2)));
      grown.set(block.bytes.subarray(0, block.length));
      this.#bytes += grown.length - block.bytes.length;
      block.bytes = grown;
      block.isShared = false;
    }
    block.bytes.set(payload, block.length);
    block.length = needed;
  }

  /** Small blocks share slabs with each other only: in Node's own pool they would keep what has long been done with. */
  #blockOf(length: number): Buffer {
    if (length === MAX_BLOCK_BYTES) return this.#spares.take(this.#roomBytes);
    if (length > SLAB_BYTES / 4) return Buffer.allocUnsafeSlow(length);
    if (this.#slabUsed + length > SLAB_BYTES) {
      this.#slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.#slabUsed = 0;
    }
    this.#slabUsed += length;
    return this.#slab.subarray(this.#slabUsed - length, this.#slabUsed);
  }

  #push(
    stream: CachedStream,
    segmentStart: Position,
    position: Position,
    payload: Buffer,
    writtenCrc: number | null,
  ): void {
    const { length } = payload;
    const isShared = length >= OWN_BLOCK_BYTES;
    let bytes = payload;
    if (!isShared) {
      bytes = this.#blockOf(Math.max(length, firstBytes(stream.cached.last)));
      bytes.set(payload);
    }
    stream.cached.add({ start: position, segmentStart, bytes, length, writtenCrc, isShared });
    this.#bytes += bytes.length;
  }

  #spare({ bytes, isShared }: TailBlock): void {
    if (!isShared && bytes.length === MAX_BLOCK_BYTES) this.#spares.give(bytes, this.#roomBytes);
  }

  /** What nobody uses goes first. */
  #keepBound(): void {
    this.#spares.fit(this.#roomBytes);
    if (this.isOverfull) this.#evict();
  }

  #evict(): void {
    for (const stream of this.#evictable) {
      let dropped = 0;
      for (const block of stream.cached.blocks) {
        if (block.start + block.length > stream.written || !this.isOverfull) break;
        this.#bytes -= block.bytes.length;
        this.#spare(block);
        dropped += 1;
      }
      stream.cached.forget(dropped);
      if (!mayEvict(stream)) this.#evictable.delete(stream);
      if (!this.isOverfull) return;
    }
  }
}

/** How large a new block begins: a stream that filled its last one will fill this too, and it need not grow. */
function firstBytes(last: TailBlock | undefined): number {
  return last !== undefined && last.bytes.length === MAX_BLOCK_BYTES ? MAX_BLOCK_BYTES : MIN_BLOCK_BYTES;
}

function mayEvict({ cached: { blocks }, written }: CachedStream): boolean {
  const first = blocks[0];
  return first !== undefined && first.start + first.length <= written;
}
