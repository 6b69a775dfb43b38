import { join } from "node:path";
import { likelyFrames, type LikelyFrame, type LikelyFrames } from "./damaged-frames.js";
import type { DamagedPlace } from "./damaged-place.js";
import { ANYBODYS } from "../segments/damage-log.js";
import { bringsBytes, broughtBytes } from "../journal/apply-record.js";
import { cutOff, readJournalFile, type ExpectedJournal, type JournalDamage } from "../journal/journal-reader.js";
import {
  readJournal,
  scanFiles,
  scanJournal,
  understood,
  type ListedFile,
  type Run,
  type ScannedFile,
} from "../journal/journal-scanner.js";
import { isSuperseded, meetStream, ownSidecar, type FirstRecord, type JournaledStream } from "./journaled-stream.js";
import type { SoundJournalFile } from "../recovery/recovery.js";
import type { DataDirectory } from "../directory/directory.js";
import { DirectoryError } from "../directory/lock.js";
import {
  decodeRecords,
  RecordKind,
  SECTOR_BYTES,
  type Frame,
  type JournalRecord,
  type StreamIdentity,
} from "../format/record.js";
import type { Position } from "../../storage.js";

/** A file of the journal. Its sound frames, also those after damage, are read anew each time, to save memory. */
export interface SurveyedFile extends SoundJournalFile {
  readonly bytes: number;
}

/** What the journal holds. */
export interface Survey {
  readonly files: readonly SurveyedFile[];
  readonly damages: readonly DamagedPlace[];
  /** By id. */
  readonly streams: ReadonlyMap<string, JournaledStream>;
  /** Ids of streams whose deletion is lost, and whose name another has by now. */
  readonly superseded: ReadonlySet<string>;
  /** The batch of the last sound frame, 0 when there is none. */
  readonly lastBatch: number;
  /** The highest batch that it has had, as far as anything tells. */
  readonly highestBatch: number;
  /** The file whose first frame belongs to another directory, if there is one. */
  readonly foreign: string | null;
}

/**
 * Reads the whole journal as recovery would, and beyond what recovery would stop at; changes nothing. It must have had
 * the batch `knownBatch`, because a sidecar holds it; 0 when nothing is known.
 */
export function surveyJournal(directory: DataDirectory, knownBatch = 0): Promise<Survey> {
  return new Surveyor(directory, knownBatch).survey(scanJournal(directory, "tolerant"));
}

/** Reads the journal files that were set aside, each by itself: what is between them has been applied and freed. */
export async function surveyKept(directory: DataDirectory): Promise<Survey> {
  const { files, layout } = directory;
  const kept = new Map<number, ListedFile>();
  for (const place of [join(layout.damaged, "journal"), layout.damaged]) {
    for (const name of await files.list(place)) {
      const [, digits, kind] = /^(\d+)\.(journal|kept)$/.exec(name) ?? [];
      const sequence = Number(digits);
      if (digits !== undefined)
        kept.set(sequence, { path: join(place, name), sequence, standing: kind === "kept" ? "kept" : "alone" });
    }
  }
  const listed = [...kept.values()].sort((left, right) => left.sequence - right.sequence);
  return new Surveyor(directory, 0).survey(scanFiles(directory, listed));
}

/** What is known of a file while it is read, and after: the next one's first frame may tell that it lost its last. */
interface FileState extends ScannedFile, SurveyedFile {
  readonly byHandle: Map<number, JournaledStream>;
  readonly bindings: Map<number, StreamIdentity>;
  /** Handles of which only a damaged frame says what they stand for, and that is not certain. */
  readonly uncertain: Set<number>;
  /** That of the frame before the next; `null` where nobody knows. */
  lastBatch: number | null;
}

type DamageAt = Pick<JournalDamage, "offset" | "problem" | "next">;

/** Damaged frames of one file, and whose handles they use. */
interface FilePart {
  readonly state: FileState;
  readonly frames: readonly LikelyFrame[];
}

/** What a damaged place seems to have held. */
interface Held {
  readonly parts: readonly FilePart[];
  /** Whether there was nothing else. */
  readonly isAll: boolean;
}

class Surveyor {
  readonly #directory: DataDirectory;
  readonly #knownBatch: number;
  readonly #damages: DamagedPlace[] = [];
  readonly #streams = new Map<string, JournaledStream>();
  #lastBatch = 0;
  #likelyBatch = 0;
  /** The last batch of what was kept of files from before the journal's first. */
  #keptBatch = 0;
  #foreign: string | null = null;
  /** Whether frames of the newest file were cut off. */
  #isCutOff = false;
  /** Whether nothing but a sidecar says that something is missing. */
  #isOnlyTold = false;
  readonly #states: FileState[] = [];

  constructor(directory: DataDirectory, knownBatch: number) {
    this.#directory = directory;
    this.#knownBatch = knownBatch;
  }

  async survey(runs: AsyncIterable<Run>): Promise<Survey> {
    for await (const run of runs) {
      const state = this.#stateOf(run.file);
      if (run.damage !== null) await this.#noteDamage(state, run.damage, run.bytes);
      for (const frame of run.frames) await this.#takeFrame(state, frame);
    }
    await this.#noteMissed();
    const lastBatch = this.#lastBatch;
    const highestBatch = Math.max(lastBatch, this.#likelyBatch, this.#keptBatch, this.#knownBatch);
    const superseded = this.#deleteSuperseded();
    const found = { files: this.#states, damages: this.#damages, streams: this.#streams, foreign: this.#foreign };
    return { ...found, superseded, lastBatch, highestBatch };
  }

  #deleteSuperseded(): Set<string> {
    const ids = new Set<string>();
    // A sound journal has each deletion; and a sidecar that no record vouches for may be from anywhere.
    if (this.#damages.length === 0 || this.#isOnlyTold) return ids;
    const streams = [...this.#streams.values()];
    const created = new Map(
      streams.filter(({ createdHere }) => createdHere).map((stream) => [stream.directory, stream]),
    );
    for (const stream of streams) {
      if (stream.deleted || !isSuperseded(stream, created.get(stream.directory))) continue;
      stream.deleted = true;
      ids.add(stream.identity.id);
    }
    return ids;
  }

  #stateOf(file: ScannedFile): FileState {
    const { path, expected } = file;
    const known = this.#states.find((state) => state.path === path);
    if (known !== undefined) return known;
    const frames = async (): Promise<readonly Frame[]> =>
      readJournalFile(await readJournal(this.#directory.files, path), expected).frames;
    const handles = { byHandle: new Map(), bindings: new Map(), uncertain: new Set<number>() };
    const state: FileState = { ...file, ...handles, frames, lastBatch: expected.lastBatch };
    this.#states.push(state);
    return state;
  }

  #noteDamage(state: FileState, damage: JournalDamage, bytes: Buffer): Promise<void> | void {
    if (damage.kind === "gap") return this.#noteGap(state, damage, bytes);
    if (damage.kind === "lost") return this.#noteLost(state, damage);
    const { path } = state;
    // Nothing of this directory's in it, but somebody's: it must not be taken for an empty one.
    if (damage.kind === "foreign") this.#foreign = path;
    else this.#isCutOff = damage.mayHideFrames;
    this.#damages.push(placeOf(path, damage, this.#isCutOff ? "anybody" : "nobody"));
  }

  /** Looks at where the journal ends, when all files are known: a sidecar, or kept records, may know more than it. */
  async #noteMissed(): Promise<void> {
    const newest = this.#states.findLast(({ standing, hasFrames }) => standing === "next" && hasFrames);
    const lastBatch = this.#lastBatch;
    const knownBatch = Math.max(this.#keptBatch, this.#knownBatch);
    if (this.#foreign !== null || this.#isCutOff || newest === undefined || knownBatch <= lastBatch) return;
    this.#isOnlyTold = this.#damages.length === 0;
    const held = await this.#behindLast(Infinity);
    const problem = `it ends with batch ${lastBatch}, but a meta.json holds batch ${knownBatch}`;
    const isAll = held.isAll && countOf(held) >= knownBatch - lastBatch;
    await this.#note(newest, { offset: newest.end, problem, next: null }, { ...held, isAll });
  }

  /** Of files without frames, before the first that has some or where none has, the one that shows something had it. */
  async #noteLost(first: FileState, damage: JournalDamage): Promise<void> {
    const held = await this.#behindLast(Infinity);
    const last = held.parts.flatMap(({ frames }) => frames).at(-1);
    if (damage.next === null) {
      const state = held.parts.find(({ frames }) => frames.length > 0)?.state ?? first;
      return this.#note(state, damage, { ...held, isAll: held.isAll && last !== undefined });
    }
    const { batch } = damage.next;
    const isAll = batch === 1 || (held.isAll && last?.isCertain === true && last.frame.batch === batch - 1);
    await this.#note(first, damage, { ...held, isAll });
  }

  /** What is between the last sound frame and the next, in this file and at the end of the one before, was damaged. */
  async #noteGap(state: FileState, damage: JournalDamage, bytes: Buffer): Promise<void> {
    const { offset, next } = damage;
    const { lastBatch, expected } = state;
    const limit = next?.offset ?? bytes.length;
    const own = likelyFrames(bytes, offset, limit, expected);
    const isOwnAll = own.areWhole && own.end === limit;
    // Batches count no frames in what was kept: they follow each other without a gap, and the last has no records.
    if (next === null || expected.isKept === true) {
      const isAll = isOwnAll && (next !== null || own.frames.at(-1)?.frame.recordCount === 0);
      return this.#note(state, damage, { parts: [{ state, frames: own.frames }], isAll });
    }
    // Else they count every frame: none is missing.
    if (next.batch - 1 === lastBatch) return this.#note(state, damage, { parts: [], isAll: true });
    const missing = lastBatch === null ? 0 : next.batch - lastBatch - 1 - own.frames.length;
    const earlier = missing > 0 && offset === 0 ? await this.#behindLast(missing, state) : { parts: [], isAll: true };
    const isAll = isOwnAll && earlier.isAll && countOf(earlier) === missing;
    await this.#note(state, damage, { parts: [...earlier.parts, { state, frames: own.frames }], isAll });
  }

  /**
   * Up to `most` frames behind the last sound one, in the files before that of `until`: they looked like a torn write
   * until it was known better.
   */
  async #behindLast(most: number, until?: FileState): Promise<Held> {
    const parts: FilePart[] = [];
    let isAll = true;
    const states = this.#states.filter(({ standing }) => standing !== "kept");
    const before = until === undefined ? states : states.slice(0, states.indexOf(until));
    const last = before.findLastIndex(({ hasFrames }) => hasFrames);
    for (const state of before.slice(Math.max(0, last))) {
      const { path, end: from, expected } = state;
      const bytes = await readJournal(this.#directory.files, path);
      const likely = likelyFrames(bytes, from, bytes.length, expected, most - countOf({ parts }));
      parts.push({ state, frames: likely.frames });
      // Where as many are looked for as there may be, more may have been cut off.
      isAll &&= likely.areWhole && (most !== Infinity || !mayBeCutOff(bytes, likely, expected.sequence));
    }
    return { parts, isAll };
  }

  async #note(state: FileState, damage: DamageAt, { parts, isAll }: Held): Promise<void> {
    const { offset, next } = damage;
    const boundBefore = new Set([...state.byHandle.values()].map(({ identity }) => identity.id));
    const after = batchBefore(next, state.expected) + 1;
    const suspects = new Set<string>();
    let isKnown = isAll;
    for (const { state: owner, frames } of parts) {
      for (const likely of frames) isKnown = (await this.#takeLikely(owner, likely, after, suspects)) && isKnown;
    }
    // Behind a sound frame of the same file, what was lost is of streams that it had bound, if all of those are known.
    const areAllBound =
      next !== null && offset > 0 && next.offset > offset && next.handles - bindingsIn(next) === state.byHandle.size;
    const others = isKnown ? "nobody" : areAllBound ? boundBefore : "anybody";
    this.#damages.push({ ...placeOf(state.path, damage, others, after), suspects });
  }

  async #takeFrame(state: FileState, frame: Frame): Promise<void> {
    for (const record of understood(state.path, frame, decodeRecords(frame)))
      await this.#takeRecord(state, frame, record);
    state.lastBatch = frame.batch;
    // The journal goes on from the file before what was kept, not from this.
    if (state.standing === "kept") this.#keptBatch = Math.max(this.#keptBatch, frame.batch);
    else this.#lastBatch = frame.batch;
  }

  async #takeRecord(
    { path, byHandle, bindings, uncertain }: FileState,
    frame: Frame,
    record: JournalRecord,
  ): Promise<void> {
    const damage = this.#damages.at(-1);
    const { identity } = record;
    if (identity !== null)
      byHandle.set(record.handle, await this.#meet({ record, identity, batch: frame.batch, isSound: true }));
    const stream = byHandle.get(record.handle);
    if (stream === undefined) {
      // It was bound where nobody can tell who was.
      const here = this.#damages.filter(({ file }) => file === path);
      const place = here.findLast(({ others }) => others === "anybody") ?? here.at(-1);
      if (place === undefined)
        throw new DirectoryError(`journal file ${path} uses handle ${record.handle} without saying what it means`);
      place.strayRecords += 1;
      place.strayBatch = frame.batch;
      return;
    }
    damage?.behind.add(stream.identity.id);
    // That is good enough to name the stream, not to give it bytes.
    if (uncertain.has(record.handle)) stream.suspect ||= frame.batch > (ownSidecar(stream)?.batch ?? 0);
    else if (record.kind === RecordKind.delete) {
      // Also of one that only a damaged record named, and whose sidecar is lost: its files go.
      bindings.set(record.handle, stream.identity);
      this.#delete(stream);
    } else stream.follow(record, path, frame);
  }

  #delete(stream: JournaledStream): void {
    stream.deleted = true;
    // One that nobody could read went by its name.
    if (stream.identity.config.contentType !== ANYBODYS) return;
    for (const other of this.#streams.values()) if (other.directory === stream.directory) other.deleted = true;
  }

  /** Notes whose records a damaged frame before batch `after` seems to hold; false where that is not known of all. */
  async #takeLikely(
    state: FileState,
    { frame, records, isWhole, isCertain }: LikelyFrame,
    after: number,
    suspects: Set<string>,
  ): Promise<boolean> {
    let areKnown = isWhole;
    const tails = new Map<JournaledStream, Position>();
    if (isCertain) this.#likelyBatch = Math.max(this.#likelyBatch, frame.batch);
    const batch = isCertain ? frame.batch : after - 1;
    for (const record of records) {
      const stream = await this.#likelyOwner(state, record, batch, isCertain);
      const fits =
        stream !== null &&
        (isCertain || !bringsBytes(record) || record.position === (tails.get(stream) ?? stream.tail));
      areKnown &&= fits;
      if (stream === null) continue;
      if (bringsBytes(record)) tails.set(stream, record.position + broughtBytes(record));
      suspects.add(stream.identity.id);
      stream.suspect ||= batch > (ownSidecar(stream)?.batch ?? 0);
    }
    return areKnown;
  }

  /** Who a damaged record is for. A name that nothing else vouches for counts where there is such a stream. */
  async #likelyOwner(
    { byHandle, bindings, uncertain }: FileState,
    record: JournalRecord,
    batch: number,
    isCertain: boolean,
  ): Promise<JournaledStream | null> {
    const { handle, identity } = record;
    if (identity === null) return byHandle.get(handle) ?? null;
    const known = this.#streams.get(identity.id);
    const stream = known ?? (await meetStream(this.#directory, { record, identity, batch, isSound: false }));
    const isThere = ownSidecar(stream) !== null;
    if (known === undefined && !isThere && !isCertain) return null;
    this.#streams.set(identity.id, stream);
    byHandle.set(handle, stream);
    if (!isCertain) uncertain.add(handle);
    // A deletion behind it counts also where there are no files yet, or where nobody can read whose they are.
    else if (isThere || known !== undefined || stream.sidecar?.kind === "damaged") bindings.set(handle, identity);
    return stream;
  }

  async #meet(first: FirstRecord): Promise<JournaledStream> {
    const { id } = first.identity;
    const met = this.#streams.get(id) ?? (await meetStream(this.#directory, first));
    this.#streams.set(id, met);
    return met;
  }
}

function placeOf(
  file: string,
  { offset, problem }: DamageAt,
  others: DamagedPlace["others"],
  after = Infinity,
): DamagedPlace {
  const unknown = { behind: new Set<string>(), suspects: new Set<string>(), strayRecords: 0, strayBatch: 0 };
  return { file, offset, problem, after, others, ...unknown };
}

/** The last batch that damage before `next` can have had. The end of a kept file repeats the last one of that file. */
function batchBefore(next: Frame | null, { isKept }: ExpectedJournal): number {
  if (next === null) return Infinity;
  return isKept === true && next.recordCount === 0 ? next.batch : next.batch - 1;
}

/** Whether a file may have had more frames behind these. */
function mayBeCutOff(bytes: Buffer, { frames, end }: LikelyFrames, sequence: number): boolean {
  // Where none is certain, none vouches for the file's length.
  const isVouched = frames.length === 0 || frames.some(({ isCertain }) => isCertain);
  if (!isVouched && end + SECTOR_BYTES > bytes.length) return true;
  const all = frames.map(({ frame }) => frame);
  return cutOff(bytes, all, end, sequence)?.mayHideFrames === true;
}

function countOf({ parts }: Pick<Held, "parts">): number {
  return parts.reduce((count, { frames }) => count + frames.length, 0);
}

/** How many handles a frame gives out. */
function bindingsIn(frame: Frame): number {
  return new Set([...decodeRecords(frame)].filter(({ identity }) => identity !== null).map(({ handle }) => handle))
    .size;
}
