import {
  DamagedStreamError,
  TrimmedStreamError,
  type Allocate,
  type MaybePromise,
  type Position,
} from "../../storage.js";
import type { DamageLog } from "./damage-log.js";
import type { Neighbours } from "../format/append-index.js";
import type { FileStream } from "../memory/file-stream.js";
import { IndexReader } from "./index-reader.js";
import { sidecarPath } from "../format/layout.js";
import { endOf } from "../memory/segment.js";
import { deletedMeanwhile, readThrough } from "./segment-reader.js";
import type { StreamFiles } from "./stream-files.js";

/** Reads a stream's bytes wherever they are: in memory, in its own segments, or in those of its sources. */
export class StreamReader {
  readonly #parts: StreamFiles;
  readonly #damageLog: DamageLog;
  readonly #indexes: IndexReader;

  constructor(parts: StreamFiles, damageLog: DamageLog) {
    this.#parts = parts;
    this.#damageLog = damageLog;
    this.#indexes = new IndexReader(parts);
  }

  /**
   * Where a read from `from` of about `maxBytes`, which ends before the tail, does not cut an append in two; `null`
   * where that is not known. Throws TrimmedStreamError and StorageBusyError.
   */
  endOfRead(stream: FileStream, from: Position, maxBytes: number): MaybePromise<Position | null> {
    if (from < stream.earliest) throw new TrimmedStreamError(stream);
    const reach = from + maxBytes;
    const inherited = reach < stream.lineage.end ? stream.lineage.at(reach) : null;
    const owner = inherited?.owner ?? stream;
    const segment = owner.segmentAt(reach);
    if (segment === undefined || reach >= endOf(segment)) return null;
    const { start } = segment;
    const endFor = (found: Neighbours | null): Position | null => {
      if (found === null) return start > from ? start : null;
      // A fork may have been made in the middle of an append: for the fork it ends there.
      return start + found.before > from
        ? start + found.before
        : Math.min(start + found.after, inherited?.to ?? Infinity);
    };
    const found = this.#indexes.around(owner, segment, reach - start);
    return found instanceof Promise ? found.then(endFor) : endFor(found);
  }

  /**
   * At most `maxBytes` durable bytes from `from` on, which is before the tail; fewer where a segment ends. Throws
   * DamagedStreamError, DeletedStreamError, TrimmedStreamError and StorageBusyError.
   */
  read(stream: FileStream, from: Position, maxBytes: number, allocate?: Allocate): MaybePromise<Buffer> {
    if (from < stream.earliest) throw new TrimmedStreamError(stream);
    return from < stream.lineage.end
      ? this.#readInherited(stream, from, maxBytes, allocate)
      : this.#readOwn(stream, from, maxBytes, allocate);
  }

  #readInherited(fork: FileStream, from: Position, maxBytes: number, allocate?: Allocate): MaybePromise<Buffer> {
    // Nobody keeps the bytes for a fork that is deleted.
    if (fork.deleted) throw deletedMeanwhile(fork);
    const { owner, to } = fork.lineage.at(from);
    const { tail } = owner.state;
    if (from >= tail) throw this.#lacking(owner, fork, `it ends at ${tail}`, "behind");
    if (from < owner.cached.start && owner.damage === null && owner.segmentAt(from) === undefined)
      throw this.#lacking(owner, fork, `it begins at ${owner.earliest}`, "before");
    const bytes = this.#readOwn(owner, from, Math.min(maxBytes, to - from), allocate);
    if (!(bytes instanceof Promise)) return bytes;
    return bytes.catch((error: unknown) => {
      if (fork.deleted) throw deletedMeanwhile(fork);
      // The source dropped what this fork, which begins later by now, no longer needed.
      if (error instanceof TrimmedStreamError) throw new TrimmedStreamError(fork);
      throw error instanceof DamagedStreamError ? inFork(error, fork, to) : error;
    });
  }

  #lacking({ name, directory }: FileStream, fork: FileStream, what: string, where: "behind" | "before"): unknown {
    const problem = `${what}, but its fork ${JSON.stringify(fork.name)} shares bytes ${where} that`;
    return this.#damageLog.told(new DamagedStreamError(name, sidecarPath(directory), problem));
  }

  /** Reads from the stream's own files, and what is on its way to them. */
  #readOwn(stream: FileStream, from: Position, maxBytes: number, allocate?: Allocate): MaybePromise<Buffer> {
    const { pool, cache } = this.#parts;
    const { cached } = stream;
    if (stream.damage !== null) throw stream.damage;
    if (from < cached.start)
      return this.#damageLog.telling(
        readThrough(pool, cache, stream, from, Math.min(maxBytes, cached.start - from), allocate),
      );
    cache.used(stream);
    return cached.read(from, maxBytes);
  }
}

/** What was found in a stream that `fork` comes from, whose bytes end for the fork at `to`. */
function inFork(found: DamagedStreamError, fork: FileStream, to: Position): DamagedStreamError {
  const { stream, file, problem, offset, readable } = found;
  return readable === null
    ? found
    : new DamagedStreamError(stream, file, problem, offset, {
        stream: fork,
        position: Math.min(readable.position, to),
      });
}
