import { basename, join } from "node:path";
import { nextTurn } from "../../../ops/turns.js";
import { DamagedStreamError, StorageBusyError, type ListedStream } from "../../storage.js";
import type { EngineParts } from "../disk/engine-state.js";
import { errorCode, isBusy, isPassing, isPathFault, isSystemError, readWhole, type Files } from "../disk/files.js";
import { coveredSidecarPath, sidecarPath, type Layout } from "../format/layout.js";
import type { FileStream } from "../memory/file-stream.js";
import { isExcess, oldestOf, partsOf, type OldestPart } from "../memory/segment.js";
import { damaged, decodeSidecar, type Sidecar, type SidecarResult } from "../format/sidecar.js";

/** Sidecars read between two pauses, and how long those are: listing a million streams disturbs nobody. */
const BURST = 16;
const PAUSE_MS = 10;
/** Streams in memory that are looked at in one turn of the event loop. */
const TURN = 256;
/** So many sources of forks in a row are looked at for what one of them begins with. */
const MAX_SOURCES = 8;

/** The sidecar in a stream's directory, or what is wrong with it; `null` when there is none. */
export function readSidecarIn(files: Files, directory: string): Promise<SidecarResult | null> {
  return readSidecarAt(files, sidecarPath(directory));
}

async function readSidecarAt(files: Files, path: string): Promise<SidecarResult | null> {
  try {
    const bytes = await readWhole(files, path);
    return bytes === null ? null : decodeSidecar(bytes);
  } catch (error) {
    if (!isPathFault(error)) throw error;
    return damaged(`it can't be read (${errorCode(error)})`);
  }
}

/** What a stream's directory has for the journal's records of the stream to go on from. */
export interface SidecarBase {
  /** The stream's own sidecar, also where a notice stands in its place; `null` where there is none. */
  readonly own: Sidecar | null;
  /** What is in its place. */
  readonly read: SidecarResult | null;
  /** Whether something else stands in its place that says what is wrong: a notice, or what a repair decided. */
  readonly isTold: boolean;
  /** Whether nothing in the directory was ever vouched for: what is in it may go. */
  readonly isVacant: boolean;
  /** Why there is no sidecar of its own. */
  readonly problem: string;
}

/** What the journal's records of stream `id` go on from. Throws what is no fault of the files' and does not pass. */
export async function readBase(files: Files, id: string, directory: string): Promise<SidecarBase> {
  const read = await readSidecarIn(files, directory);
  if (read === null) return { own: null, read, isTold: false, isVacant: true, problem: "it is missing" };
  if (read.kind === "sound") {
    const { sidecar } = read;
    return {
      own: sidecar.id === id ? sidecar : null,
      read,
      isTold: false,
      isVacant: sidecar.claimed,
      problem: `it is that of ${JSON.stringify(sidecar.name)}`,
    };
  }
  const { problem, isNotice, isFinal } = read;
  const before = isNotice ? await readSidecarAt(files, coveredSidecarPath(directory)) : read;
  const own = before?.kind === "sound" && before.sidecar.id === id ? before.sidecar : null;
  // A notice without a sidecar beside it is of a stream that never had one.
  return { own, read, isTold: isNotice || isFinal, isVacant: before === null, problem };
}

/**
 * The sidecar of the stream `name`, `null` when the directory holds no such stream, or what is wrong with it.
 * `lastBatch` is the journal's.
 */
export async function readSidecar(
  files: Files,
  name: string,
  directory: string,
  lastBatch: number,
): Promise<Sidecar | DamagedStreamError | null> {
  const path = sidecarPath(directory);
  let read: SidecarResult | null;
  try {
    read = await readSidecarIn(files, directory);
    if (read === null) {
      const leftovers = await files.list(directory);
      return leftovers.some(isOfStream) ? new DamagedStreamError(name, path, "it is missing") : null;
    }
  } catch (error) {
    return unreadable(name, path, error);
  }
  if (read.kind === "damaged") return new DamagedStreamError(name, path, read.problem);
  if (read.sidecar.name !== name)
    return new DamagedStreamError(name, path, `it is that of ${JSON.stringify(read.sidecar.name)}`);
  if (read.sidecar.batch > lastBatch)
    return new DamagedStreamError(name, path, newerThanJournal(read.sidecar.batch, lastBatch));
  return read.sidecar;
}

/** Whether a file is of a stream that was there. */
function isOfStream(file: string): boolean {
  return file.endsWith(".seg") || file === basename(coveredSidecarPath(""));
}

/** What is wrong with a sidecar of a batch that the journal does not know: what came last in the journal is gone. */
export function newerThanJournal(batch: number, lastBatch: number): string {
  return `it is of batch ${batch}, but the journal ends with batch ${lastBatch}`;
}

/** A stream whose file can't be read now: it may be readable later, if only a disk failed. */
export class UnreadableStreamError extends DamagedStreamError {}

/** Handles what a read of a stream's file rejects with: what passes stays as it is. Always throws. */
export function asUnreadable(name: string, path: string): (error: unknown) => never {
  return (error) => {
    throw isPassing(error) ? error : unreadable(name, path, error);
  };
}

/** Whatever is in the way of a stream's file, it is this stream's alone. Throws what is no fault of the system's. */
function unreadable(name: string, path: string, error: unknown): UnreadableStreamError {
  if (isBusy(error)) throw busy(path, error);
  if (!isSystemError(error)) throw error;
  return new UnreadableStreamError(name, path, `it can't be read (${errorCode(error)})`);
}

function busy(path: string, error: unknown): StorageBusyError {
  return new StorageBusyError(`${path} can't be opened now`, { cause: error });
}

/** Has a read give `instead` where there is a fault. What passes is thrown: whole directories would be left out. */
function orIfFaulty<T>(path: string, instead: T): (error: unknown) => T {
  return (error) => {
    if (isPassing(error)) throw busy(path, error);
    return instead;
  };
}

/**
 * Every stream that was not deleted and is sound, without loading it. Those that the journal alone has are in memory,
 * which is `streams`. `unneeded` is told of deleted ones that no fork needs any more. Throws {@link StorageBusyError}
 * where too much is open to see all of them.
 */
export async function* listStreams(
  { files, layout, clock }: Pick<EngineParts, "files" | "layout" | "clock">,
  streams: ReadonlyMap<string, FileStream>,
  unneeded: (name: string) => void,
): AsyncGenerator<ListedStream> {
  /** Their ids: some get a sidecar meanwhile. */
  const journaled = new Set<string>();
  for await (const stream of inJournalAlone(streams)) {
    journaled.add(stream.id);
    yield listedInMemory(stream);
  }
  let readCount = 0;
  const shards = await files.list(layout.streams).catch((error: unknown) => {
    throw isPassing(error) ? busy(layout.streams, error) : error;
  });
  for (const shard of shards) {
    const directory = join(layout.streams, shard);
    for (const entry of await files.list(directory).catch(orIfFaulty(directory, []))) {
      const path = join(directory, entry);
      // What can't be read is found when somebody asks for it.
      const read = await readSidecarIn(files, path).catch(orIfFaulty(path, null));
      if (read?.kind === "sound" && !read.sidecar.claimed && !journaled.has(read.sidecar.id)) {
        const { sidecar } = read;
        if (!sidecar.softDeleted) yield listedOf(files, layout, sidecar);
        else if (sidecar.forks === null) unneeded(sidecar.name);
      }
      readCount += 1;
      if (readCount % BURST === 0) await new Promise<void>((resolve) => clock.after(PAUSE_MS, resolve));
    }
  }
}

/** Those of `streams` that are there now and have no sidecar of their own. */
async function* inJournalAlone(streams: ReadonlyMap<string, FileStream>): AsyncGenerator<FileStream> {
  // Those that come meanwhile are not waited for.
  let left = streams.size;
  for (const stream of streams.values()) {
    if ((left -= 1) < 0) return;
    if (left % TURN === 0) await nextTurn();
    const isThere = stream.created && stream.standing === "live" && stream.damage === null;
    if (isThere && stream.disk.persistedBatch === 0) yield stream;
  }
}

function listedInMemory(stream: FileStream): ListedStream {
  const { name, config, state, handedOut } = stream;
  const { tail, touchedAtMs } = state;
  return {
    ...{ name, config, touchedAtMs, tail },
    // Of what only recovery has brought into memory the source is not known yet.
    isExcess: (limits, nowMs) =>
      (handedOut || config.forkedFrom === null) && stream.excessPlace(limits, nowMs) !== null,
  };
}

/** The part of a fork that retention drops first, which its source has; `null` where that is not known. */
async function oldestShared(files: Files, layout: Layout, sidecar: Sidecar, nowMs: number): Promise<OldestPart | null> {
  const from = sidecar.earliest.position;
  let owner = sidecar;
  let to = sidecar.state.tail;
  for (let depth = 0; depth < MAX_SOURCES; depth += 1) {
    const { forkedFrom } = owner.config;
    if (forkedFrom === null || from >= forkedFrom.point) return oldestOf(partsOf(owner.segments, from, to), nowMs);
    // A source that can't be read is found when somebody asks for the fork.
    const directory = layout.streamDirectory(forkedFrom.name);
    const read = await readSidecarIn(files, directory).catch(orIfFaulty(directory, null));
    if (read?.kind !== "sound" || read.sidecar.id !== forkedFrom.id) return null;
    to = Math.min(to, forkedFrom.point);
    owner = read.sidecar;
  }
  // Rather looked at in vain than kept for ever.
  return { end: from + 1, newestAtMs: sidecar.config.createdAtMs };
}

function listedOf(files: Files, layout: Layout, sidecar: Sidecar): ListedStream {
  const { name, config, state, earliest } = sidecar;
  const { tail, touchedAtMs } = state;
  const { position } = earliest;
  const isShared = config.forkedFrom !== null && position < config.forkedFrom.point;
  return {
    ...{ name, config, touchedAtMs, tail },
    isExcess(limits, nowMs) {
      if (!isShared) {
        const oldest = oldestOf(partsOf(sidecar.segments, position, tail), nowMs);
        return isExcess(oldest, tail, limits, nowMs);
      }
      return oldestShared(files, layout, sidecar, nowMs).then((shared) => isExcess(shared, tail, limits, nowMs));
    },
  };
}
