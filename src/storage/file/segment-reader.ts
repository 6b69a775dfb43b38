import type { Position } from "../storage.js";
import { DamagedStreamError, DeletedStreamError, StorageBusyError } from "../storage.js";
import { crc32 } from "./crc32.js";
import type { FileStream, Segment, UncheckedBytes } from "./file-stream.js";
import { errorCode, isBusy, readFully, type OpenFile } from "./files.js";
import { segmentPath } from "./layout.js";
import type { SegmentPool } from "./segment-pool.js";
import type { TailCache } from "./tail-cache.js";

/** The most that is kept of what one read brought. */
const MAX_KEPT_BYTES = 64 * 1024;

/** Reads like `readSegment`, and keeps what ends at the stream's tail for the next reader. Throws DamagedStreamError. */
export async function readThrough(pool: SegmentPool, cache: TailCache, stream: FileStream, from: Position, maxBytes: number): Promise<Buffer> {
  const bytes = await readSegment(pool, stream, from, maxBytes);
  const end = from + bytes.length;
  const segment = stream.segmentAt(from);
  // Only what no append has changed meanwhile: blocks follow each other without a gap, up to the tail.
  const isTail = end === stream.state.tail && stream.written === end && stream.cached.blocks.length === 0;
  if (isTail && bytes.length <= MAX_KEPT_BYTES && segment !== undefined && !stream.deleted) cache.keep(stream, segment.start, from, bytes);
  return bytes;
}

/** Bytes that one step of a comparison reads. */
const CHECK_STEP_BYTES = 1024 * 1024;

/**
 * Reads bytes from the segment that holds `from`: at most `maxBytes`, and not past the segment. Before the first read of
 * a segment that another process wrote, its bytes are compared with their CRC. Throws DamagedStreamError.
 */
export async function readSegment(pool: SegmentPool, stream: FileStream, from: Position, maxBytes: number): Promise<Buffer> {
  const segment = stream.segmentAt(from);
  if (segment === undefined) throw new RangeError(`no segment holds position ${from} of ${stream.directory}`);
  const offset = from - segment.start;
  const length = Math.min(maxBytes, segment.length - offset);
  const path = segmentPath(stream.directory, segment.start);
  if (segment.unchecked !== null) await check(pool, stream, path, segment, segment.unchecked);
  const bytes = await useSegment(pool, stream, path, (file) => readFully(file, offset, length));
  if (stream.deleted || bytes.length < length) throw faultOf(stream, path, `it ends at byte ${offset + bytes.length}, before byte ${offset + length}`);
  return bytes;
}

/** A file that is not what it should be: damage, unless the stream is gone and the path its successor's by now. */
function faultOf(stream: FileStream, path: string, problem: string): Error {
  if (stream.deleted) return new DeletedStreamError(`the stream ${JSON.stringify(stream.name)} was deleted while it was read`);
  return new DamagedStreamError(stream.name, path, problem);
}

/** Readers that come while a comparison is under way wait for it. Damage is remembered; a failed read is tried again. */
function check(pool: SegmentPool, stream: FileStream, path: string, segment: Segment, unchecked: UncheckedBytes): Promise<void> {
  unchecked.checking ??= useSegment(pool, stream, path, (file) => crcOf(file, unchecked.length))
    .then((crc) => {
      if (crc !== unchecked.crc) throw faultOf(stream, path, `its first ${unchecked.length} bytes are not what was written`);
      segment.unchecked = null;
    })
    .catch((error: unknown) => {
      if (!(error instanceof DamagedStreamError)) unchecked.checking = null;
      throw error;
    });
  return unchecked.checking;
}

/** The CRC-32 of `length` bytes of a file from `from` on, or of what there is of them. */
export async function crcOf(file: OpenFile, length: number, from = 0): Promise<number> {
  let crc = 0;
  for (let done = 0; done < length; done += CHECK_STEP_BYTES) {
    crc = crc32(await readFully(file, from + done, Math.min(CHECK_STEP_BYTES, length - done)), crc);
  }
  return crc;
}

async function useSegment<T>(pool: SegmentPool, stream: FileStream, path: string, work: (file: OpenFile) => Promise<T>): Promise<T> {
  try {
    return await pool.use(path, "read", work);
  } catch (error) {
    if (isBusy(error)) throw new StorageBusyError(`${path} can't be opened now`, { cause: error });
    if (errorCode(error) === "ENOENT") throw faultOf(stream, path, "it is missing");
    throw error;
  }
}
