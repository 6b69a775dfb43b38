import { join } from "node:path";
import { likelyFrames, type LikelyFrame } from "./damaged-frames.js";
import type { DamagedPlace } from "./damaged-place.js";
import { ANYBODYS } from "../segments/damage-log.js";
import { errorCode, readWhole, type Files } from "../disk/files.js";
import { cutOff, LOST_FRAMES, NO_FRAMES, readJournalFile, soundFrames, type CutOff, type ExpectedJournal, type JournalDamage } from "../journal/journal-reader.js";
import { bringsBytes, broughtBytes, follow, isSuperseded, meetStream, ownSidecar, type FirstRecord, type JournaledStream } from "./journaled-stream.js";
import { journalSequenceOf, keptSequenceOf, type Layout } from "../format/layout.js";
import { DirectoryError } from "../directory/lock.js";
import { decodeRecords, RecordKind, type Frame, type JournalRecord, type StreamIdentity } from "../format/record.js";
import type { Position } from "../../storage.js";

/** Where a survey looks. */
export interface SurveyOptions {
  readonly files: Files;
  readonly layout: Layout;
  readonly directoryId: Buffer;
  /** A batch that the journal must have had, because a sidecar holds it; 0 when nothing is known. */
  readonly knownBatch?: number;
}

/** One file of the journal. */
export interface SurveyedFile {
  readonly path: string;
  readonly sequence: number;
  readonly bytes: number;
  /** The sound frames, also those behind damage; read again each time, so that they are not all in memory. */
  readonly frames: () => Promise<readonly Frame[]>;
  /** What handles stand for that were bound in a damaged frame, where that is certain. */
  readonly bindings: ReadonlyMap<number, StreamIdentity>;
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

/** Reads the whole journal as recovery would, and beyond what recovery would stop at; changes nothing. */
export async function surveyJournal(options: SurveyOptions): Promise<Survey> {
  const { files, layout } = options;
  const surveyor = new Surveyor(options);
  const names = await files.list(layout.journal);
  const sequences = new Set(ordered(names.map(journalSequenceOf)));
  for (const sequence of ordered(names.map(keptSequenceOf))) {
    // Where the file itself is still there, it has all of that.
    if (!sequences.has(sequence)) await surveyor.surveyFile(layout.keptJournalFile(sequence), sequence, "kept");
  }
  for (const sequence of sequences) await surveyor.surveyFile(layout.journalFile(sequence), sequence, "next");
  await surveyor.surveyEnd();
  return surveyor.survey();
}

/** Reads the journal files that were set aside, each by itself: what is between them has been applied and freed. */
export async function surveyKept(options: SurveyOptions): Promise<Survey> {
  const { files, layout } = options;
  const surveyor = new Surveyor(options);
  const kept = new Map<number, string>();
  for (const directory of [join(layout.damaged, "journal"), layout.damaged]) {
    for (const name of await files.list(directory)) {
      const sequence = Number(/^(\d+)\.(?:journal|kept)$/.exec(name)?.[1] ?? NaN);
      if (!Number.isNaN(sequence)) kept.set(sequence, join(directory, name));
    }
  }
  for (const [sequence, path] of [...kept].sort(([left], [right]) => left - right)) await surveyor.surveyFile(path, sequence, path.endsWith(".kept") ? "kept" : "alone");
  return surveyor.survey();
}

function ordered(sequences: readonly (number | null)[]): number[] {
  return sequences.filter((sequence) => sequence !== null).sort((left, right) => left - right);
}

/**
 * How a file stands to those before it: the `next` of the journal goes on from them, what was `kept` of one has some of its
 * frames, and one that was set aside stands `alone`.
 */
type Standing = "next" | "kept" | "alone";

/** What is known of a file while it is read, and behind it: the next one's first frame may tell that it has lost its last. */
interface FileState {
  readonly path: string;
  readonly expected: ExpectedJournal;
  readonly byHandle: Map<number, JournaledStream>;
  readonly bindings: Map<number, StreamIdentity>;
  /** Handles of which only a damaged frame says what they stand for, and that is not certain. */
  readonly uncertain: Set<number>;
  /** Where its last sound frame ends. */
  end: number;
  /** Whether it has a sound frame. */
  hasFrames: boolean;
  cut: CutOff | null;
}

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

/** Where damage is, and the sound frame behind it, if there is one. */
interface Place {
  readonly state: FileState;
  readonly offset: number;
  readonly problem: string;
  readonly next: Frame | null;
}

class Surveyor {
  readonly #options: SurveyOptions;
  readonly #files: SurveyedFile[] = [];
  readonly #damages: DamagedPlace[] = [];
  readonly #streams = new Map<string, JournaledStream>();
  #lastBatch: number | null = null;
  #likelyBatch = 0;
  /** The last batch of what was kept of files from before the journal's first. */
  #keptBatch = 0;
  #foreign: string | null = null;
  /** Whether nothing but a sidecar says that something is missing. */
  #isOnlyTold = false;
  readonly #states: FileState[] = [];

  constructor(options: SurveyOptions) {
    this.#options = options;
  }

  survey(): Survey {
    const lastBatch = this.#lastBatch ?? 0;
    const highestBatch = Math.max(lastBatch, this.#likelyBatch, this.#keptBatch, this.#options.knownBatch ?? 0);
    // A sound journal has each deletion; and a sidecar that no record vouches for may be from anywhere.
    const mayLackDeletions = this.#damages.length > 0 && !this.#isOnlyTold;
    const superseded = [...this.#streams.values()].filter((stream) => mayLackDeletions && !stream.deleted && isSuperseded(stream));
    for (const stream of superseded) stream.deleted = true;
    const ids = new Set(superseded.map(({ identity }) => identity.id));
    return { files: this.#files, damages: this.#damages, streams: this.#streams, superseded: ids, lastBatch, highestBatch, foreign: this.#foreign };
  }

  /** Takes the next file. */
  async surveyFile(path: string, sequence: number, standing: Standing): Promise<void> {
    const { files, directoryId } = this.#options;
    const bytes = await readJournal(files, path);
    const isNext = standing === "next";
    const isKept = standing === "kept";
    const expected: ExpectedJournal = { sequence, directoryId, lastBatch: isNext ? this.#lastBatch : null, isKept };
    const { frames, damage, end } = readJournalFile(bytes, expected);
    const sound = damage === null ? frames : [...frames, ...soundFrames(bytes, end, expected)];
    if (isNext) await this.#noteLost(sound[0] ?? null);
    const state: FileState = { path, expected, byHandle: new Map(), bindings: new Map(), uncertain: new Set(), end: 0, hasFrames: sound.length > 0, cut: null };
    // Nothing of this directory's in it, but somebody's: it must not be taken for an empty one.
    if (damage !== null && sound.length === 0 && !isKept) {
      this.#foreign = path;
      this.#damages.push(placeOf(path, damage, "nobody"));
    }
    let last = expected.lastBatch;
    for (const frame of sound) {
      if (frame.offset !== state.end || (last !== null && !isKept && frame.batch !== last + 1)) await this.#noteBetween(state, bytes, frame, last);
      await this.#takeFrame(state, frame);
      last = frame.batch;
    }
    if (isKept) await this.#endKept(state, bytes, sound.at(-1));
    else {
      state.cut = cutOff(bytes, sound, state.end, sequence);
      this.#states.push(state);
    }
    const reread = async (): Promise<readonly Frame[]> => [...soundFrames(await readJournal(files, path), 0, expected)];
    this.#files.push({ path, sequence, bytes: bytes.length, frames: reread, bindings: state.bindings });
  }

  /** What was kept of a file ends with a frame without records; the journal goes on from the file before it, not from this. */
  async #endKept(state: FileState, bytes: Buffer, last: Frame | undefined): Promise<void> {
    if (state.end !== bytes.length || last?.recordCount !== 0) {
      const { frames, end, areWhole } = likelyFrames(bytes, state.end, bytes.length, state.expected);
      const isAll = areWhole && end === bytes.length && frames.at(-1)?.frame.recordCount === 0;
      await this.#note({ state, offset: state.end, problem: "its end is missing", next: null }, { parts: [{ state, frames }], isAll });
    }
    this.#keptBatch = Math.max(this.#keptBatch, this.#lastBatch ?? 0);
    this.#lastBatch = null;
  }

  /** Looks at where the journal ends, now that all files are known. */
  async surveyEnd(): Promise<void> {
    if (this.#foreign !== null || this.#states.length === 0) return;
    const knownBatch = Math.max(this.#keptBatch, this.#options.knownBatch ?? 0);
    const newest = this.#states.findLast(({ hasFrames }) => hasFrames);
    if (newest === undefined) return this.#noteNothingSound();
    const lastBatch = this.#lastBatch ?? 0;
    const { cut } = newest;
    if (cut !== null) this.#damages.push(placeOf(newest.path, cut, cut.mayHideFrames ? "anybody" : "nobody"));
    if (cut?.mayHideFrames === true || knownBatch <= lastBatch) return;
    this.#isOnlyTold = this.#damages.length === 0;
    const held = await this.#behindLast(Infinity);
    const isAll = held.isAll && countOf(held) >= knownBatch - lastBatch;
    await this.#note({ state: newest, offset: newest.end, problem: `it ends with batch ${lastBatch}, but a meta.json holds batch ${knownBatch}`, next: null }, { ...held, isAll });
  }

  /** Every directory has a frame from its first start on: of several files the one that shows something had it. */
  async #noteNothingSound(): Promise<void> {
    const held = await this.#behindLast(Infinity);
    const state = held.parts.find(({ frames }) => frames.length > 0)?.state ?? this.#states[0];
    if (state !== undefined) await this.#note({ state, offset: 0, problem: NO_FRAMES, next: null }, { ...held, isAll: held.isAll && countOf(held) > 0 });
  }

  /** Before the first file with frames, of which `next` is the first, one without has lost them. */
  async #noteLost(next: Frame | null): Promise<void> {
    const [state] = this.#states;
    if (next !== null && this.#lastBatch === null && state !== undefined) {
      const held = await this.#behindLast(Infinity);
      const last = held.parts.flatMap(({ frames }) => frames).at(-1);
      const isAll = next.batch === 1 || (held.isAll && last?.isCertain === true && last.frame.batch === next.batch - 1);
      await this.#note({ state, offset: 0, problem: LOST_FRAMES, next }, { ...held, isAll });
    }
  }

  /** What is between the last sound frame and `next`, in this file and at the end of the one before, was damaged. */
  async #noteBetween(state: FileState, bytes: Buffer, next: Frame, lastBatch: number | null): Promise<void> {
    const isHere = next.offset !== state.end;
    const problem = isHere ? `sound records follow at byte ${next.offset}` : `batch ${next.batch} follows batch ${lastBatch}`;
    const place = { state, offset: state.end, problem, next };
    const { isKept } = state.expected;
    // Batches count every frame: none is missing.
    if (next.batch - 1 === lastBatch && isKept !== true) return this.#note(place, { parts: [], isAll: true });
    const own = likelyFrames(bytes, state.end, next.offset, state.expected);
    // There they count none: its frames follow each other without a gap.
    if (isKept === true) return this.#note(place, { parts: [{ state, frames: own.frames }], isAll: own.areWhole && own.end === next.offset });
    const missing = lastBatch === null ? 0 : next.batch - lastBatch - 1 - own.frames.length;
    const earlier = missing > 0 && state.end === 0 ? await this.#behindLast(missing) : { parts: [], isAll: true };
    const isAll = own.areWhole && own.end === next.offset && earlier.isAll && countOf(earlier) === missing;
    await this.#note(place, { parts: [...earlier.parts, { state, frames: own.frames }], isAll });
  }

  /** Up to `most` frames behind the last sound one, in the files before this: they looked like a torn write until it was known better. */
  async #behindLast(most: number): Promise<Held> {
    const parts: FilePart[] = [];
    let isAll = true;
    for (const state of this.#states.slice(Math.max(0, this.#states.findLastIndex(({ hasFrames }) => hasFrames)))) {
      const bytes = await readJournal(this.#options.files, state.path);
      const { frames, end, areWhole } = likelyFrames(bytes, state.end, bytes.length, state.expected, most - countOf({ parts }));
      parts.push({ state, frames });
      // Where as many are looked for as there may be, more may have been cut off.
      const cut = most === Infinity ? cutOff(bytes, frames.map(({ frame }) => frame), end, state.expected.sequence) : null;
      isAll &&= areWhole && cut?.mayHideFrames !== true;
    }
    return { parts, isAll };
  }

  async #note({ state, offset, problem, next }: Place, { parts, isAll }: Held): Promise<void> {
    const boundBefore = new Set([...state.byHandle.values()].map(({ identity }) => identity.id));
    const after = batchBefore(next, state.expected) + 1;
    const suspects = new Set<string>();
    let isKnown = isAll;
    for (const { state: owner, frames } of parts) {
      for (const likely of frames) isKnown = (await this.#takeLikely(owner, likely, after, suspects)) && isKnown;
    }
    // Behind a sound frame of the same file, what was lost is of streams that it had bound, if all of those are known.
    const areAllBound = next !== null && offset > 0 && next.offset > offset && next.handles - bindingsIn(next) === state.byHandle.size;
    this.#damages.push({ ...placeOf(state.path, { offset, problem }, isKnown ? "nobody" : areAllBound ? boundBefore : "anybody", after), suspects });
  }

  async #takeFrame(state: FileState, frame: Frame): Promise<void> {
    for (const record of decodeRecords(frame)) await this.#takeRecord(state, frame, record);
    this.#lastBatch = frame.batch;
    state.end = frame.nextOffset;
  }

  async #takeRecord({ path, byHandle, uncertain }: FileState, frame: Frame, record: JournalRecord): Promise<void> {
    const damage = this.#damages.at(-1);
    if (record.identity !== null) byHandle.set(record.handle, await this.#meet({ record, identity: record.identity, batch: frame.batch, isSound: true }));
    const stream = byHandle.get(record.handle);
    if (stream === undefined) {
      // It was bound where nobody can tell who was.
      const place = this.#damages.findLast(({ file, others }) => file === path && others === "anybody") ?? this.#damages.findLast(({ file }) => file === path);
      if (place === undefined) throw new DirectoryError(`journal file ${path} uses handle ${record.handle} without saying what it means`);
      place.strayRecords += 1;
      place.strayBatch = frame.batch;
      return;
    }
    damage?.behind.add(stream.identity.id);
    // That is good enough to name the stream, not to give it bytes.
    if (uncertain.has(record.handle)) stream.suspect ||= frame.batch > (ownSidecar(stream)?.batch ?? 0);
    else if (record.kind === RecordKind.delete) this.#delete(stream);
    else follow(stream, record, path, frame);
  }

  #delete(stream: JournaledStream): void {
    stream.deleted = true;
    // One that nobody could read went by its name.
    if (stream.identity.config.contentType !== ANYBODYS) return;
    for (const other of this.#streams.values()) if (other.directory === stream.directory) other.deleted = true;
  }

  /** Notes whose records a damaged frame before batch `after` seems to hold; false where that is not known of all. */
  async #takeLikely(state: FileState, { frame, records, isWhole, isCertain }: LikelyFrame, after: number, suspects: Set<string>): Promise<boolean> {
    let areKnown = isWhole;
    const tails = new Map<JournaledStream, Position>();
    if (isCertain) this.#likelyBatch = Math.max(this.#likelyBatch, frame.batch);
    const batch = isCertain ? frame.batch : after - 1;
    for (const record of records) {
      const stream = await this.#likelyOwner(state, record, batch, isCertain);
      const fits = stream !== null && (isCertain || !bringsBytes(record) || record.position === (tails.get(stream) ?? stream.tail));
      areKnown &&= fits;
      if (stream === null) continue;
      if (bringsBytes(record)) tails.set(stream, record.position + broughtBytes(record));
      suspects.add(stream.identity.id);
      stream.suspect ||= batch > (ownSidecar(stream)?.batch ?? 0);
    }
    return areKnown;
  }

  /** Who a damaged record is for. A name that nothing else vouches for counts where there is such a stream. */
  async #likelyOwner({ byHandle, bindings, uncertain }: FileState, record: JournalRecord, batch: number, isCertain: boolean): Promise<JournaledStream | null> {
    const { handle, identity } = record;
    if (identity === null) return byHandle.get(handle) ?? null;
    const known = this.#streams.get(identity.id);
    const stream = known ?? (await meetStream(this.#options, { record, identity, batch, isSound: false }));
    const isThere = ownSidecar(stream) !== null;
    if (known === undefined && !isThere && !isCertain) return null;
    this.#streams.set(identity.id, stream);
    byHandle.set(handle, stream);
    if (!isCertain) uncertain.add(handle);
    // A deletion behind it counts also where there are no files yet.
    else if (isThere || known !== undefined) bindings.set(handle, identity);
    return stream;
  }

  async #meet(first: FirstRecord): Promise<JournaledStream> {
    const { id } = first.identity;
    const known = this.#streams.get(id);
    if (known !== undefined) return known;
    const met = await meetStream(this.#options, first);
    this.#streams.set(id, met);
    return met;
  }
}

function placeOf(file: string, { offset, problem }: JournalDamage, others: DamagedPlace["others"], after = Infinity): DamagedPlace {
  return { file, offset, problem, after, behind: new Set(), suspects: new Set(), others, strayRecords: 0, strayBatch: 0 };
}

/** The last batch that what is damaged before `next` can have had. What ends a kept file has the batch of the frame before it. */
function batchBefore(next: Frame | null, { isKept }: ExpectedJournal): number {
  if (next === null) return Infinity;
  return isKept === true && next.recordCount === 0 ? next.batch : next.batch - 1;
}

function countOf({ parts }: Pick<Held, "parts">): number {
  return parts.reduce((count, { frames }) => count + frames.length, 0);
}

/** How many handles a frame gives out. */
function bindingsIn(frame: Frame): number {
  return new Set([...decodeRecords(frame)].filter(({ identity }) => identity !== null).map(({ handle }) => handle)).size;
}

async function readJournal(files: Files, path: string): Promise<Buffer> {
  try {
    return (await readWhole(files, path)) ?? Buffer.alloc(0);
  } catch (error) {
    throw errorCode(error) === "" ? error : new DirectoryError(`journal file ${path} can't be read: ${errorCode(error)}`);
  }
}
