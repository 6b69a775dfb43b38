import type { Position } from "../storage.js";
import { DamagedStreamError, StorageBusyError } from "../storage.js";
import { crc32 } from "./crc32.js";
import type { FileStream, Segment, UncheckedBytes } from "./file-stream.js";
import { errorCode, isBusy, readFully, type OpenFile } from "./files.js";
import { segmentPath } from "./layout.js";
import type { SegmentPool } from "./segment-pool.js";

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
  // Bytes that were only cached never reached its files, and its path may be that of its successor by now.
  if (stream.deleted) throw new Error(`the stream ${JSON.stringify(stream.name)} was deleted while it was read`);
  if (bytes.length < length) throw new DamagedStreamError(stream.name, path, `it ends at byte ${offset + bytes.length}, before byte ${offset + length}`);
  return bytes;
}

/** Readers that come while a comparison is under way wait for it. Damage is remembered; a failed read is tried again. */
function check(pool: SegmentPool, stream: FileStream, path: string, segment: Segment, unchecked: UncheckedBytes): Promise<void> {
  unchecked.checking ??= useSegment(pool, stream, path, (file) => crcOf(file, unchecked.length))
    .then((crc) => {
      if (crc !== unchecked.crc) throw new DamagedStreamError(stream.name, path, `its first ${unchecked.length} bytes are not what was written`);
      segment.unchecked = null;
    })
    .catch((error: unknown) => {
      if (!(error instanceof DamagedStreamError)) unchecked.checking = null;
      throw error;
    });
  return unchecked.checking;
}

/** The CRC-32 of a file's first `length` bytes, or of what there is of them. */
export async function crcOf(file: OpenFile, length: number): Promise<number> {
  let crc = 0;
  for (let offset = 0; offset < length; offset += CHECK_STEP_BYTES) {
    crc = crc32(await readFully(file, offset, Math.min(CHECK_STEP_BYTES, length - offset)), crc);
  }
  return crc;
}

async function useSegment<T>(pool: SegmentPool, stream: FileStream, path: string, work: (file: OpenFile) => Promise<T>): Promise<T> {
  try {
    return await pool.use(path, "read", work);
  } catch (error) {
    if (isBusy(error)) throw new StorageBusyError(`${path} can't be opened now`, { cause: error });
    if (errorCode(error) === "ENOENT" && !stream.deleted) throw new DamagedStreamError(stream.name, path, "it is missing");
    throw error;
  }
}
