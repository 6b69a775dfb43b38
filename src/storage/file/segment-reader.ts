import type { Position } from "../storage.js";
import { DamagedStreamError } from "../storage.js";
import type { FileStream } from "./file-stream.js";
import { errorCode, readFully } from "./files.js";
import { segmentPath } from "./layout.js";
import type { SegmentPool } from "./segment-pool.js";

/** Reads bytes from the segment that holds `from`: at most `maxBytes`, and not past the segment. Throws DamagedStreamError. */
export async function readSegment(pool: SegmentPool, stream: FileStream, from: Position, maxBytes: number): Promise<Buffer> {
  const segment = stream.segmentAt(from);
  if (segment === undefined) throw new RangeError(`no segment holds position ${from} of ${stream.directory}`);
  const offset = from - segment.start;
  const length = Math.min(maxBytes, segment.length - offset);
  const path = segmentPath(stream.directory, segment.start);
  const bytes = await readThrough(pool, stream, path, offset, length);
  if (bytes.length < length) throw new DamagedStreamError(stream.name, path, `it ends at byte ${offset + bytes.length}, before byte ${offset + length}`);
  return bytes;
}

async function readThrough(pool: SegmentPool, stream: FileStream, path: string, offset: number, length: number): Promise<Buffer> {
  try {
    return await pool.use(path, "read", (file) => readFully(file, offset, length));
  } catch (error) {
    if (errorCode(error) === "ENOENT" && !stream.deleted) throw new DamagedStreamError(stream.name, path, "it is missing");
    throw error;
  }
}
