import { basename, dirname, join, relative } from "node:path";
import type { Position } from "../../storage.js";
import { noFile, readWhole, type SystemFiles } from "../disk/files.js";
import { replaceFile } from "../disk/replacement.js";
import {
  indexPath,
  lossesPath,
  replacementPath,
  segmentPath,
  segmentStartOf,
  sidecarPath,
  type Layout,
} from "../format/layout.js";
import { decodeSidecar, type Sidecar, type StoredSegment } from "../format/sidecar.js";
import type { Doubts } from "./doubts.js";
import { copyGrowing, copyWhole, type GrowingFile } from "./file-copy.js";
import type { Tally, Trouble } from "./tally.js";
import { ownDirectory } from "./own-places.js";
import { assertNoLink, isUnreadable, readingFrom, UnreadableError } from "./unreadable.js";

/** Where a copy comes from and where it goes. */
export interface CopyPlaces {
  readonly files: SystemFiles;
  readonly from: Layout;
  readonly to: Layout;
  readonly doubts: Doubts;
  readonly tally: Tally;
  /** Ends the copying between two files. */
  readonly stop: AbortSignal;
}

/** A segment that a sidecar names and that is not there: the journal may say that it was dropped. */
export interface MissingSegment extends Trouble {
  readonly id: string;
  readonly end: Position;
}

/** What streams turned out not to have. */
export interface Found {
  readonly missing: MissingSegment[];
  readonly damaged: Trouble[];
}

/** How often a stream is copied again whose name has passed to another one meanwhile. */
const MAX_TRIES = 100;

/**
 * Copies the files of streams as far as their sidecars vouch for them; the journal, which is copied after them, has the
 * rest. Of a stream that another takes the place of meanwhile, that one is copied.
 */
export class StreamCopy {
  readonly found: Found = { missing: [], damaged: [] };
  /** Directories with segments and without a sidecar: the journal must have their streams. */
  readonly withoutSidecar: string[] = [];
  readonly #places: CopyPlaces;

  constructor(places: CopyPlaces) {
    this.#places = places;
  }

  /** The same directory in the backup. */
  targetOf(directory: string): string {
    const { from, to } = this.#places;
    return join(to.root, relative(from.root, directory));
  }

  /** Brings a stream's directory in the backup to what the stream's is now, as far as that can be read. */
  async copy(directory: string): Promise<void> {
    this.#places.tally.streams += 1;
    const found: Found = { missing: [], damaged: [] };
    await ownDirectory(this.#places.files, this.targetOf(directory));
    await this.#tolerate(found, async () => {
      await assertNoLink(this.#places.files, directory);
      await this.#copyLatest(directory);
    });
    if (found.damaged.length === 0) return;
    await this.doubt(directory);
    // Without its sidecar, what the backup has of it is worth more than what is left here.
    const known = await readWhole(this.#places.files, sidecarPath(this.targetOf(directory)));
    if (known === null) await this.#copyRest(directory, found);
    this.found.damaged.push(...found.damaged);
  }

  /** What the backup has of the stream is to be looked at by the next one: it may not be what was written. */
  doubt(directory: string): Promise<void> {
    return this.#places.doubts.add(basename(directory));
  }

  async #copyLatest(directory: string): Promise<void> {
    for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
      const bytes = await this.#sidecarOf(directory);
      const found: Found = { missing: [], damaged: [] };
      const id = bytes === null ? await this.#copyBare(directory) : await this.#copyWith(bytes, directory, found);
      // What was wrong with one that went meanwhile was that it was going.
      if (idIn(await this.#sidecarOf(directory)) !== id) continue;
      this.found.missing.push(...found.missing);
      this.found.damaged.push(...found.damaged);
      return;
    }
    throw new Error(`${directory} changes too fast to be copied`);
  }

  /** Copies a directory file by file, whatever it holds, and notes which of them can't be read. */
  async copyAsItIs(directory: string, found = this.found): Promise<void> {
    await this.doubt(directory);
    await this.#copyEach(directory, found, () => true);
  }

  /** All but the sidecar, which by now may be another stream's than the files that were copied before. */
  #copyRest(directory: string, found: Found): Promise<void> {
    const path = sidecarPath(directory);
    const sidecars = [path, replacementPath(path)].map((each) => basename(each));
    return this.#copyEach(directory, found, (name) => !sidecars.includes(name));
  }

  async #copyEach(directory: string, found: Found, isWanted: (name: string) => boolean): Promise<void> {
    const { files } = this.#places;
    const target = this.targetOf(directory);
    await ownDirectory(files, target);
    await files.makeDirectory(target);
    await this.#tolerate(found, async () => {
      await assertNoLink(files, directory);
      const names = (await readingFrom(directory, () => files.list(directory))).filter(isWanted);
      await this.#removeOthers(target, new Set(names));
      for (const name of names) {
        const path = join(directory, name);
        await this.#tolerate(found, async () => {
          const kind = (await readingFrom(path, () => files.linkStatus(path)))?.kind ?? "directory";
          if (kind === "link" || kind === "other") throw new UnreadableError(path, noFile(path, kind));
          if (kind === "file") await copyWhole(files, path, join(target, name));
        });
      }
    });
    await files.syncDirectory(target);
  }

  #sidecarOf(directory: string): Promise<Buffer | null> {
    const path = sidecarPath(directory);
    return readingFrom(path, () => readWhole(this.#places.files, path, "plain"));
  }

  /** Runs what copies; where a file can't be read, notes that, once, and resolves to `null`. */
  async #tolerate<T>(found: Found, copy: () => Promise<T>): Promise<T | null> {
    const { from } = this.#places;
    try {
      return await copy();
    } catch (error) {
      if (!isUnreadable(error, from)) throw error;
      const { path: file, problem } = error;
      if (!found.damaged.some((trouble) => trouble.file === file))
        found.damaged.push({ stream: from.nameOf(dirname(file)), file, problem });
      return null;
    }
  }

  async #copyBare(directory: string): Promise<null> {
    await this.#vacate(directory);
    // Looked at now: later it may be another stream's, which is made after the batch that the copy ends with.
    const { files } = this.#places;
    const isDirectory = (await files.linkStatus(directory))?.kind === "directory";
    const names = isDirectory ? await readingFrom(directory, () => files.list(directory)) : [];
    if (names.some((name) => segmentStartOf(name) !== null)) this.withoutSidecar.push(directory);
    return null;
  }

  /** Copies what a sidecar vouches for; resolves to the id that it names, `null` for none. */
  async #copyWith(bytes: Buffer, directory: string, found: Found): Promise<string | null> {
    const { files } = this.#places;
    const read = decodeSidecar(bytes);
    if (read.kind === "damaged") {
      await this.copyAsItIs(directory, found);
      found.damaged.push({ stream: null, file: sidecarPath(directory), problem: read.problem });
      return null;
    }
    const { sidecar } = read;
    // Its creation is in the journal, with all it has, or nowhere.
    if (sidecar.claimed) {
      await this.#vacate(directory);
      return sidecar.id;
    }
    const target = this.targetOf(directory);
    const before = await readWhole(files, sidecarPath(target));
    const known = before === null ? null : soundIn(before);
    if (before !== null && known?.id !== sidecar.id) await files.removeTree(target);
    if (known?.id !== sidecar.id) await files.makeDirectory(target);
    const hasChanged = await this.#copyFiles(sidecar, known?.id === sidecar.id ? known : null, directory, found);
    if (before?.equals(bytes) === true && !hasChanged) return sidecar.id;
    if (found.damaged.length > 0) await this.doubt(directory);
    // Only now does it say so: what is killed before goes on from what the old one vouches for.
    await files.syncDirectory(target);
    await replaceFile(files, sidecarPath(target), bytes);
    await files.syncDirectory(target);
    this.#places.tally.changedStreams += 1;
    return sidecar.id;
  }

  async #copyFiles(sidecar: Sidecar, known: Sidecar | null, directory: string, found: Found): Promise<boolean> {
    const { files, doubts, tally, stop } = this.#places;
    const target = this.targetOf(directory);
    const isDoubted = doubts.has(basename(directory));
    const losses = lossesPath(directory);
    const hasLosses = (await this.#tolerate(found, () => copyWhole(files, losses, lossesPath(target)))) ?? true;
    // Before the segments are copied: there need not be room for those that go and those that come.
    await this.#removeOthers(target, namesFor(sidecar, hasLosses));
    let hasChanged = false;
    for (const segment of neededOf(sidecar)) {
      const before = known?.segments.find(({ start }) => start === segment.start);
      const isSealed = sidecar.state.closed || segment !== sidecar.segments.at(-1);
      for (const file of filesOf(segment, before, directory, target)) {
        stop.throwIfAborted();
        const outcome = await this.#tolerate(found, () => copyGrowing(files, { ...file, isSealed, isDoubted }, tally));
        hasChanged ||= outcome !== "kept";
        const about = { stream: sidecar.name, file: file.from };
        const end = segment.start + segment.length;
        if (outcome === "missing") found.missing.push({ ...about, problem: "it is missing", id: sidecar.id, end });
        if (outcome === "damaged") found.damaged.push({ ...about, problem: "it does not match its checksum" });
      }
    }
    return hasChanged || hasLosses;
  }

  async #removeOthers(target: string, wanted: ReadonlySet<string>): Promise<void> {
    const { files } = this.#places;
    for (const name of await files.list(target)) if (!wanted.has(name)) await files.removeTree(join(target, name));
  }

  async #vacate(directory: string): Promise<void> {
    await this.#places.files.removeTree(this.targetOf(directory));
  }
}

function soundIn(bytes: Buffer): Sidecar | null {
  const read = decodeSidecar(bytes);
  return read.kind === "sound" ? read.sidecar : null;
}

function idIn(bytes: Buffer | null): string | null {
  return bytes === null ? null : (soundIn(bytes)?.id ?? null);
}

/** The segments that the stream has not dropped. */
function neededOf({ segments, earliest }: Sidecar): readonly StoredSegment[] {
  return segments.filter(({ start, length }) => start + length > earliest.position);
}

/** The files of a segment: its bytes and, where it has one, its index. */
function filesOf(
  { start, length, crc, index }: StoredSegment,
  before: StoredSegment | undefined,
  directory: string,
  target: string,
): Omit<GrowingFile, "isSealed" | "isDoubted">[] {
  const bytes = {
    from: segmentPath(directory, start),
    to: segmentPath(target, start),
    wanted: { length, crc },
    known: before ?? null,
  };
  const wanted = inFile(index);
  if (wanted === null) return [bytes];
  const known = inFile(before?.index ?? null);
  return [bytes, { from: indexPath(directory, start), to: indexPath(target, start), wanted, known }];
}

/** An index that has a file. */
function inFile(index: StoredSegment["index"]): Exclude<StoredSegment["index"], "one" | null> | null {
  return index === null || index === "one" || index.inline !== null ? null : index;
}

/** What belongs into the stream's directory in the backup. */
function namesFor(sidecar: Sidecar, hasLosses: boolean): ReadonlySet<string> {
  const paths = neededOf(sidecar).flatMap(({ start, index }) =>
    inFile(index) === null ? [segmentPath("", start)] : [segmentPath("", start), indexPath("", start)],
  );
  const all = [sidecarPath(""), ...(hasLosses ? [lossesPath("")] : []), ...paths];
  return new Set(all.map((path) => basename(path)));
}
