import type { Allocate, Position } from "../../storage.js";
import { DamagedStreamError, DeletedStreamError, StorageBusyError, TrimmedStreamError } from "../../storage.js";
import { crc32 } from "../format/crc32.js";
import type { FileStream } from "../memory/file-stream.js";
import { errorCode, isBusy, isSystemError, readFully, type OpenFile } from "../disk/files.js";
import { segmentPath } from "../format/layout.js";
import { endOf, type Segment, type UncheckedBytes } from "../memory/segment.js";
import type { SegmentPool } from "./segment-pool.js";
import { SmallSet } from "../memory/small-set.js";
import type { TailCache } from "../memory/tail-cache.js";

/** The most that is kept of what one read brought. */
const MAX_KEPT_BYTES = 64 * 1024;

/** Reads like `readSegment`, and caches what ends at the stream's tail for the next. Throws DamagedStreamError. */
export async function readThrough(
  pool: SegmentPool,
  cache: TailCache,
  stream: FileStream,
  from: Position,
  maxBytes: number,
  allocate?: Allocate,
): Promise<Buffer> {
  const bytes = await readSegment(pool, stream, from, maxBytes, allocate);
  const end = from + bytes.length;
  const segment = stream.segmentAt(from);
  // Only what no append has changed meanwhile: blocks follow each other without a gap, up to the tail.
  const isTail =
    from >= stream.earliest && end === stream.state.tail && stream.written === end && stream.cached.blocks.length === 0;
  if (isTail && bytes.length <= MAX_KEPT_BYTES && segment !== undefined && !stream.deleted)
    cache.keep(stream, segment.start, from, bytes);
  return bytes;
}

/** Bytes that one step of a comparison reads: between two, others have their turn. */
const CHECK_STEP_BYTES = 256 * 1024;
/** Buffers of a step that are kept for the next comparison: to get new ones takes longer than to fill them. */
const MAX_KEPT_BUFFERS = 16;
const keptBuffers: Buffer[] = [];
/** A segment up to this size is compared at once: a short stream does not wait behind long ones. */
const MAX_SMALL_BYTES = 1024 * 1024;

/**
 * Reads bytes from the segment that holds `from`: at most `maxBytes`, and not past the segment. Before the first read
 * of a segment that another process wrote, its bytes are compared with their CRC. Throws DamagedStreamError.
 */
export async function readSegment(
  pool: SegmentPool,
  stream: FileStream,
  from: Position,
  maxBytes: number,
  allocate?: Allocate,
): Promise<Buffer> {
  const segment = stream.segmentAt(from);
  if (segment === undefined) throw new RangeError(`no segment holds position ${from} of ${stream.directory}`);
  const offset = from - segment.start;
  const length = Math.min(maxBytes, segment.length - offset);
  // What this process wrote itself needs no comparison.
  if (segment.unchecked !== null && offset < segment.unchecked.length)
    await check(pool, stream, segment, segment.unchecked);
  const bytes = await useSegment(pool, stream, segment, (file) => readFully(file, offset, length, allocate));
  if (stream.deleted || bytes.length < length) throw tooShort(stream, segment, offset + bytes.length, offset + length);
  return bytes;
}

/** What a reader is told of a stream that is gone. */
export function deletedMeanwhile({ name }: FileStream): DeletedStreamError {
  return new DeletedStreamError(`the stream ${JSON.stringify(name)} was deleted while it was read`);
}

/** A file that is not as it should be is damage, unless it left the stream. What follows `damaged` can be read. */
function faultOf(
  stream: FileStream,
  segment: Segment,
  problem: string,
  offset: number | null = null,
  damaged = segment.length,
): Error {
  const path = segmentPath(stream.directory, segment.start);
  if (endOf(segment) <= stream.earliest) return new TrimmedStreamError(stream);
  if (stream.deleted) return deletedMeanwhile(stream);
  const position = Math.min(segment.start + damaged, stream.state.tail);
  return new DamagedStreamError(stream.name, path, problem, offset, { stream, position });
}

function tooShort(stream: FileStream, segment: Segment, end: number, wanted: number): Error {
  return faultOf(stream, segment, `it ends at byte ${end}, before byte ${wanted}`, end);
}

/** Readers wait for a comparison that is under way. Damage is remembered; a failed read is tried again. */
function check(pool: SegmentPool, stream: FileStream, segment: Segment, unchecked: UncheckedBytes): Promise<void> {
  const comparison = (): Promise<Error | null> =>
    useSegment(pool, stream, segment, (file) => compare(file, stream, segment, unchecked));
  unchecked.checking ??= (unchecked.length > MAX_SMALL_BYTES ? pool.checks.run(comparison) : comparison())
    .then((fault) => {
      if (fault !== null) {
        // What is appended from now on goes where it can be read again.
        if (!stream.deleted) (stream.damagedSegments ??= new SmallSet()).add(segment.start);
        throw fault;
      }
      segment.unchecked = null;
    })
    .catch((error: unknown) => {
      if (stream.damagedSegments?.has(segment.start) !== true) unchecked.checking = null;
      throw error;
    });
  return unchecked.checking;
}

async function compare(
  file: OpenFile,
  stream: FileStream,
  segment: Segment,
  { length, crc }: UncheckedBytes,
): Promise<Error | null> {
  const size = await file.size();
  if (size < length) return tooShort(stream, segment, size, length);
  const found = await crcOf(file, length);
  return found === crc
    ? null
    : faultOf(stream, segment, `its first ${length} bytes are not what was written`, 0, length);
}

/**
 * The CRC-32 of a file's first `length` bytes, or of what there is of them. The next step is read while one is
 * computed; `onStep` is told of the bytes of each.
 */
export async function crcOf(
  file: OpenFile,
  length: number,
  onStep: (bytes: number) => void = () => undefined,
): Promise<number> {
  // Nobody would wait for a read of nothing: it could fail after the file is closed.
  if (length === 0) return 0;
  const buffers = [takeBuffer()];
  try {
    return await computeCrc(file, length, buffers, onStep);
  } finally {
    keptBuffers.push(...buffers.slice(0, MAX_KEPT_BUFFERS - keptBuffers.length));
  }
}

function takeBuffer(): Buffer {
  return keptBuffers.pop() ?? Buffer.allocUnsafeSlow(CHECK_STEP_BYTES);
}

async function computeCrc(
  file: OpenFile,
  length: number,
  buffers: Buffer[],
  onStep: (bytes: number) => void,
): Promise<number> {
  let crc = 0;
  let coming = readStep(file, buffers, 0, length);
  for (let offset = 0, step = 1; offset < length; step += 1) {
    const bytes = await coming;
    if (bytes.length === 0) break;
    offset += bytes.length;
    if (offset < length) coming = readStep(file, buffers, offset, length, step);
    crc = crc32(bytes, crc);
    onStep(bytes.length);
  }
  return crc;
}

/** Steps take turns with two buffers; a short file needs only one. */
async function readStep(file: OpenFile, buffers: Buffer[], offset: number, length: number, step = 0): Promise<Buffer> {
  const target = (buffers[step % 2] ??= takeBuffer());
  return target.subarray(0, await file.read(target, 0, Math.min(CHECK_STEP_BYTES, length - offset), offset));
}

async function useSegment<T>(
  pool: SegmentPool,
  stream: FileStream,
  segment: Segment,
  work: (file: OpenFile) => Promise<T>,
): Promise<T> {
  const path = segmentPath(stream.directory, segment.start);
  try {
    return await pool.use(path, "read", work);
  } catch (error) {
    if (isBusy(error)) throw new StorageBusyError(`${path} can't be opened now`, { cause: error });
    if (errorCode(error) === "ENOENT") throw faultOf(stream, segment, "it is missing", 0);
    if (isSystemError(error)) throw faultOf(stream, segment, `it can't be read (${errorCode(error)})`);
    throw error;
  }
}
