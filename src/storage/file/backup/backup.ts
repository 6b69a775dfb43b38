import { dirname, join, sep } from "node:path";
import type { Clock } from "../../../ops/clock.js";
import type { Log } from "../../../ops/log.js";
import { explainUnusable } from "../directory/directory.js";
import { readMarker } from "../directory/marker.js";
import { readSidecarIn } from "../directory/catalog.js";
import { DirectoryError } from "../directory/lock.js";
import { errorPath, type SystemFiles } from "../disk/files.js";
import { replaceFile } from "../disk/replacement.js";
import { crc32 } from "../format/crc32.js";
import { isShardName, Layout, segmentPath, sidecarPath } from "../format/layout.js";
import { claimedSidecar, encodeSidecar } from "../format/sidecar.js";
import { Destination } from "./destination.js";
import { copyWhole, readRange, unshare } from "./file-copy.js";
import { JournalCopy, type LatePayload } from "./journal-copy.js";
import { openSource, PinLostError, type Source } from "./source.js";
import { StreamCopy, type CopyPlaces } from "./stream-copy.js";
import { ownDirectory, ownFile } from "./own-places.js";
import { Tally, type Trouble } from "./tally.js";
import { assertNoLink, isUnreadable, readingFrom } from "./unreadable.js";

/** How far a backup is. */
export interface BackupProgress {
  readonly streams: number;
  readonly bytes: number;
  /** The part that is done, from 0 to 1. */
  readonly done: number;
}

/** What to copy where, and who hears of it. */
export interface BackupOptions {
  readonly dir: string;
  readonly dest: string;
  readonly files: SystemFiles;
  readonly force: boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly report: (trouble: Trouble) => void;
  readonly progress: (progress: BackupProgress) => void;
  /** Ends the backup with its reason: what was copied is there for the next one, and nobody's lock is left. */
  readonly stop: AbortSignal;
}

/** What became of a backup. */
export interface BackupSummary {
  readonly tally: Tally;
  /** What was reported. */
  readonly troubles: number;
}

/** Streams copied at the same time: reading one overlaps with the syncs of another. */
const CONCURRENCY = 8;
/** How often all streams are looked at again because the server could not keep the journal for so long. */
const MAX_PASSES = 8;
/** How often large payloads are looked for that are dropped or deleted before they are copied. */
const MAX_ROUNDS = 50;

/**
 * Copies a directory as it is at one moment, whether or not a server has it open; again to the same place, only what is
 * new. Throws {@link DirectoryError}.
 *
 * While the journal is pinned, streams are copied one by one, each as far as its sidecar says, and the journal last, up
 * to one batch. A sidecar that was copied is never newer than that batch; and the journal has all that an older one
 * lacks, because what it had when the pin began is still there. So the copy is what a crash would have left at that
 * batch.
 */
export async function backUp(options: BackupOptions): Promise<BackupSummary> {
  const { files, dir, dest, force, clock, log, stop } = options;
  const from = new Layout(dir);
  const directoryId = await idOf(files, from);
  const destination = await Destination.open(dest, { files, from, directoryId, force, log });
  try {
    const { layout: to, doubts } = destination;
    for (const path of [from.streams, from.journal]) await assertOwnLink(files, path);
    const places = { files, from, to, doubts, tally: new Tally(), stop };
    for (let pass = 1; ; pass += 1) {
      stop.throwIfAborted();
      const source = await openSource({ files, layout: from, directoryId, force, clock, log, stop });
      try {
        return await new Pass(options, { places, source, destination, directoryId }).run();
      } catch (error) {
        if (!(error instanceof PinLostError)) throw error;
        if (pass === MAX_PASSES) throw new DirectoryError(`${dir}: ${LOSSES[error.message] ?? error.message}`);
      } finally {
        await source.close();
      }
      places.tally = new Tally();
    }
  } catch (error) {
    stop.throwIfAborted();
    const isSources = errorPath(error)?.startsWith(`${from.root}${sep}`) === true;
    throw explainUnusable(isSources ? from.root : destination.layout.root, error);
  } finally {
    await destination.close();
  }
}

const LOSSES: Readonly<Record<string, string>> = {
  "journal-room": "more is written to it than can be copied meanwhile: run the backup again when there is less",
  "disk-full": "its disk is full, so that the server keeps nothing for a backup: make room and run it again",
};

async function idOf(files: SystemFiles, layout: Layout): Promise<Buffer> {
  try {
    const id = await readMarker(files, layout);
    if (id !== null) return id;
  } catch (error) {
    throw explainUnusable(layout.root, error);
  }
  throw new DirectoryError(`${layout.root} is not a data directory of streamdir: ${layout.marker} is missing`);
}

/** Who runs the backup may have put a part of the directory elsewhere; others could have root copy what is root's. */
async function assertOwnLink(files: SystemFiles, path: string): Promise<void> {
  const status = await files.linkStatus(path);
  if (status?.kind !== "link" || [0, process.geteuid?.()].includes(status.owner)) return;
  throw new DirectoryError(`${path} is a symbolic link of another user: run the backup as that user`);
}

interface PassParts {
  readonly places: CopyPlaces;
  readonly source: Source;
  readonly destination: Destination;
  readonly directoryId: Buffer;
}

/** One look at everything, while the source is pinned. */
class Pass {
  readonly #options: BackupOptions;
  readonly #parts: PassParts;
  readonly #streams: StreamCopy;
  readonly #journal: JournalCopy;
  #total = 0;
  #done = 0;
  #troubles = 0;
  /** Of the 256 directories of streams, those that are links, which are left out. */
  readonly #linked: Trouble[] = [];

  constructor(options: BackupOptions, parts: PassParts) {
    this.#options = options;
    this.#parts = parts;
    this.#streams = new StreamCopy(parts.places);
    this.#journal = new JournalCopy(parts.places, parts.directoryId);
  }

  async run(): Promise<BackupSummary> {
    const { places, destination, source } = this.#parts;
    const { files, from, to, tally } = places;
    // What would end it is looked for first: until then, the earlier backup is whole.
    if (!source.isServed) await this.#journal.assertSound();
    const all = (await files.list(from.streams)).filter(isShardName);
    await destination.assertNoneLost(all);
    const shards = await this.#withoutLinked(all);
    for (const shard of shards) this.#total += (await files.list(join(from.streams, shard))).length;
    this.#options.stop.throwIfAborted();
    await destination.begin();
    await this.#journal.copyKept();
    await this.#copyStreams(shards);
    const asOf = new Date(this.#options.clock.nowMs());
    await this.#copyJournal();
    await this.#copyStrays();
    await this.#tell();
    await copyTree(places, (trouble) => this.#report(trouble), from.damaged, to.damaged);
    for (const shard of shards) await files.syncDirectory(join(to.streams, shard));
    await destination.complete(asOf);
    return { tally, troubles: this.#troubles };
  }

  async #withoutLinked(shards: readonly string[]): Promise<string[]> {
    const { files, from } = this.#parts.places;
    const own: string[] = [];
    for (const shard of shards) {
      const file = join(from.streams, shard);
      try {
        await assertNoLink(files, file);
        own.push(shard);
      } catch (error) {
        if (!isUnreadable(error, from)) throw error;
        this.#linked.push({ stream: null, file, problem: error.problem });
      }
    }
    return own;
  }

  async #copyStreams(shards: readonly string[]): Promise<void> {
    const rest = this.#directories(shards);
    const worker = async (): Promise<void> => {
      for await (const directory of rest) {
        this.#parts.source.assertPinned();
        this.#options.stop.throwIfAborted();
        await this.#streams.copy(directory);
        this.#done += 1;
        const { streams, bytes } = this.#parts.places.tally;
        this.#options.progress({ streams, bytes, done: Math.min(1, this.#done / Math.max(1, this.#total)) });
      }
    };
    await allOf(Array.from({ length: CONCURRENCY }, worker));
  }

  /** The directories of streams; what the backup has beside them leaves it. */
  async *#directories(shards: readonly string[]): AsyncGenerator<string> {
    const { files, from, to, tally } = this.#parts.places;
    for (const shard of shards) {
      const there = new Set(await files.list(join(from.streams, shard)));
      for (const name of await files.list(join(to.streams, shard))) {
        if (there.has(name)) continue;
        await files.removeTree(join(to.streams, shard, name));
        tally.removedStreams += 1;
      }
      for (const name of there) yield join(from.streams, shard, name);
    }
  }

  /**
   * The journal, and the large payloads that it only names. One that is gone was dropped or deleted since: then the
   * journal is copied a little further, up to where it says so.
   */
  async #copyJournal(): Promise<void> {
    const { source } = this.#parts;
    const { late } = this.#journal;
    let absent: LatePayload[] = [];
    for (let round = 1, seen = 0; round <= MAX_ROUNDS; round += 1) {
      this.#options.stop.throwIfAborted();
      const batch = await source.batch();
      // Where a file went meanwhile, why it went is the reason.
      await this.#journal.copyTo(batch).finally(() => source.confirm());
      // By now the journal says of those that were absent what became of them.
      for (const payload of absent) if (!(await this.#hasPayload(payload))) await this.#reportLost(payload);
      absent = [];
      for (const payload of late.slice(seen)) if (!(await this.#hasPayload(payload))) absent.push(payload);
      seen = late.length;
      if (absent.length === 0) return;
    }
    throw new DirectoryError("large appends are made and deleted too fast to be copied: run the backup again");
  }

  async #reportLost({ identity, segmentStart }: LatePayload): Promise<void> {
    const file = segmentPath(this.#parts.places.from.streamDirectory(identity.name), segmentStart);
    await this.#streams.doubt(dirname(file));
    this.#report({ stream: identity.name, file, problem: "an append in it does not match its checksum" });
  }

  /** Whether the backup has the payload, or needs none; copies it where it has not. */
  async #hasPayload({ identity, batch, position, segmentStart, length, crc }: LatePayload): Promise<boolean> {
    const { files, from, to, tally } = this.#parts.places;
    const { id, name } = identity;
    if (this.#journal.isGone(id, position + length)) return true;
    const target = to.streamDirectory(name);
    await ownDirectory(files, target);
    const read = await readSidecarIn(files, target);
    const own = read?.kind === "sound" && read.sidecar.id === id ? read.sidecar : null;
    if (own !== null && !own.claimed && own.batch >= batch) return true;
    // What is wrong with its files was reported.
    if (own === null && !this.#journal.creates(target)) return true;
    const path = segmentPath(from.streamDirectory(name), segmentStart);
    const bytes = await readLate(files, path, position - segmentStart, length).catch((error: unknown) => {
      if (isUnreadable(error, from)) return null;
      throw error;
    });
    if (bytes === null || crc32(bytes) !== crc) return false;
    if (own === null) {
      await files.removeTree(target);
      await files.makeDirectory(target);
      await replaceFile(files, sidecarPath(target), encodeSidecar(claimedSidecar(identity)));
      tally.changedStreams += 1;
    }
    const copy = segmentPath(target, segmentStart);
    if (((await ownFile(files, copy))?.links ?? 1) > 1) await unshare(files, copy);
    const file = await files.open(copy, "write");
    try {
      await file.write(bytes, position - segmentStart);
      await file.sync();
    } finally {
      await file.close();
    }
    await files.syncDirectory(target);
    tally.copiedBytes += length;
    return true;
  }

  /** Directories without a sidecar whose streams the journal does not create: theirs is lost. */
  async #copyStrays(): Promise<void> {
    for (const directory of this.#streams.withoutSidecar) {
      if (this.#journal.creates(this.#streams.targetOf(directory))) continue;
      await this.#streams.copyAsItIs(directory);
      this.#report({ stream: null, file: sidecarPath(directory), problem: "it is missing" });
    }
  }

  async #tell(): Promise<void> {
    for (const { stream, file, problem, id, end } of this.#streams.found.missing) {
      if (this.#journal.isGone(id, end)) continue;
      await this.#streams.doubt(dirname(file));
      this.#report({ stream, file, problem });
    }
    for (const trouble of [...this.#linked, ...this.#streams.found.damaged]) this.#report(trouble);
  }

  #report(trouble: Trouble): void {
    this.#troubles += 1;
    this.#options.report(trouble);
  }
}

/** What {@link readRange} gives where no directory on the way is a link. */
async function readLate(files: SystemFiles, path: string, position: number, length: number): Promise<Buffer | null> {
  for (const directory of [dirname(dirname(path)), dirname(path)]) await assertNoLink(files, directory);
  return readRange(files, path, position, length);
}

/** Waits for all of `work`, also when some fails: nothing must go on behind the caller's back. */
async function allOf(work: readonly Promise<void>[]): Promise<void> {
  for (const ended of await Promise.allSettled(work)) if (ended.status === "rejected") throw ended.reason;
}

/**
 * Copies what repairs have set aside, as far as it can be read. None of it ever changes: what is there with the same
 * size is the same.
 */
async function copyTree(
  places: CopyPlaces,
  report: (trouble: Trouble) => void,
  source: string,
  target: string,
): Promise<void> {
  const { files, from, tally } = places;
  const tell = (error: unknown): null => {
    if (!isUnreadable(error, from)) throw error;
    report({ stream: null, file: error.path, problem: error.problem });
    return null;
  };
  const names = await assertNoLink(files, source)
    .then(() => readingFrom(source, () => files.list(source)))
    .catch(tell);
  if (names === null) return;
  await ownDirectory(files, target);
  if (names.length === 0) return files.removeTree(target);
  await files.makeDirectory(target);
  for (const name of names) {
    const [path, copy] = [join(source, name), join(target, name)];
    const status = await readingFrom(path, () => files.linkStatus(path)).catch(tell);
    if (status?.kind === "directory") await copyTree(places, report, path, copy);
    else if (status !== null && (status.kind !== "file" || status.size !== (await ownFile(files, copy))?.size)) {
      const isCopied = await copyWhole(files, path, copy).catch(tell);
      if (isCopied !== null) tally.copiedBytes += status.size;
    }
  }
  await files.syncDirectory(target);
}
