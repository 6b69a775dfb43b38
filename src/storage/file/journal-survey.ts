import { join } from "node:path";
import { readBase, type SidecarBase } from "./catalog.js";
import { ANYBODYS } from "./damage.js";
import { errorCode, readWhole, type Files } from "./files.js";
import { guessHeads, LOST_FRAMES, readJournalFile, soundFrames, type ExpectedJournal } from "./journal-reader.js";
import { journalSequenceOf, keptSequenceOf, type Layout } from "./layout.js";
import { DirectoryError } from "./lock.js";
import { decodeRecords, RecordKind, type BypassedPayload, type Frame, type JournalRecord, type RecordHead, type StreamIdentity } from "./record.js";
import type { SidecarResult } from "./sidecar.js";
import type { Position } from "../storage.js";

/** Where a survey looks. */
export interface SurveyOptions {
  readonly files: Files;
  readonly layout: Layout;
  readonly directoryId: Buffer;
}

/** A stream that the journal speaks of. */
export interface JournaledStream {
  readonly identity: StreamIdentity;
  readonly directory: string;
  /** Where it ended when the journal first spoke of it; for one that was created in it, where its own bytes begin. */
  readonly firstPosition: Position;
  /** All it ever was is in the journal, from its creation on. */
  readonly createdHere: boolean;
  /** What its sidecar says, also where a notice stands in its place; `null` where there is none. */
  readonly sidecar: SidecarResult | null;
  /** Whether its directory says that it lacks records which the journal has. */
  readonly isTold: boolean;
  deleted: boolean;
  /** Where it ends when the journal is applied. */
  tail: Position;
  /** Where it begins when the journal is applied; 0 when no trim is in it. */
  trimmedTo: Position;
  /** What the journal changes in its forks, by id: where the bytes end that one needs, `null` where it is gone. */
  readonly forkChanges: Map<string, Position | null>;
  /** Records that its sidecar does not hold yet, and that can be applied. */
  pendingRecords: number;
  /** Where the journal goes on somewhere else than at the stream's end, `null` when it never does. */
  gap: JournalGap | null;
  /** It seems to have records in a damaged part of the journal. */
  suspect: boolean;
  readonly bypassed: BypassedPlace[];
}

/** Records that do not follow what the stream has. */
export interface JournalGap {
  readonly file: string;
  readonly offset: number;
  readonly position: Position;
  readonly tail: Position;
}

/** A large payload that only its segment holds. */
export interface BypassedPlace extends BypassedPayload {
  readonly position: Position;
  readonly segmentStart: Position;
}

/** A damaged place in a journal file. */
export interface DamagedPlace {
  readonly file: string;
  readonly offset: number;
  readonly problem: string;
  /** Streams with sound records behind it, by id; what is between may be records of any stream. */
  readonly behind: Set<string>;
  /** Streams that the damaged records themselves seem to be for, by id. */
  readonly suspects: Set<string>;
}

/** One file of the journal. */
export interface SurveyedFile {
  readonly path: string;
  readonly sequence: number;
  readonly bytes: number;
  /** The sound frames, also those behind damage; read again each time, so that they are not all in memory. */
  readonly frames: () => Promise<readonly Frame[]>;
}

/** What the journal holds. */
export interface Survey {
  readonly files: readonly SurveyedFile[];
  readonly damages: readonly DamagedPlace[];
  /** By id. */
  readonly streams: ReadonlyMap<string, JournaledStream>;
  /** The batch of the last sound frame, 0 when there is none. */
  readonly lastBatch: number;
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

interface Handles {
  readonly byHandle: Map<number, JournaledStream>;
  readonly damage: DamagedPlace | null;
}

class Surveyor {
  readonly #options: SurveyOptions;
  readonly #files: SurveyedFile[] = [];
  readonly #damages: DamagedPlace[] = [];
  readonly #streams = new Map<string, JournaledStream>();
  #lastBatch: number | null = null;
  #foreign: string | null = null;
  /** The first file without frames. */
  #empty: string | null = null;

  constructor(options: SurveyOptions) {
    this.#options = options;
  }

  survey(): Survey {
    return { files: this.#files, damages: this.#damages, streams: this.#streams, lastBatch: this.#lastBatch ?? 0, foreign: this.#foreign };
  }

  /** Takes the next file. */
  async surveyFile(path: string, sequence: number, standing: Standing): Promise<void> {
    const { files, directoryId } = this.#options;
    const bytes = await readJournal(files, path);
    const isNext = standing === "next";
    const isKept = standing === "kept";
    const expected: ExpectedJournal = { sequence, directoryId, lastBatch: isNext ? this.#lastBatch : null, isKept };
    const { frames, damage, end } = readJournalFile(bytes, expected);
    if (isNext) this.#noteLost(path, frames.length > 0);
    const handles = new Map<number, JournaledStream>();
    await this.#takeFrames(path, frames, { byHandle: handles, damage: this.#damages.at(-1) ?? null });
    if (damage !== null) {
      const place: DamagedPlace = { file: path, ...damage, behind: new Set(), suspects: new Set() };
      this.#damages.push(place);
      const rest = [...soundFrames(bytes, end, expected)];
      if (rest[0]?.offset !== damage.offset) this.#noteSuspects(guessHeads(bytes, damage.offset) ?? [], handles, place);
      // Nothing of this directory's in it, but somebody's: it must not be taken for an empty one.
      if (frames.length === 0 && rest.length === 0 && !isKept) this.#foreign = path;
      await this.#takeFrames(path, rest, { byHandle: handles, damage: place });
    }
    // What comes next goes on from the file before this one.
    if (isKept) this.#lastBatch = null;
    const reread = async (): Promise<readonly Frame[]> => [...soundFrames(await readJournal(files, path), 0, expected)];
    this.#files.push({ path, sequence, bytes: bytes.length, frames: reread });
  }

  /** Before the first file with frames, one without has lost them. */
  #noteLost(path: string, hasFrames: boolean): void {
    if (hasFrames && this.#lastBatch === null && this.#empty !== null) {
      this.#damages.push({ file: this.#empty, offset: 0, problem: LOST_FRAMES, behind: new Set(), suspects: new Set() });
    }
    this.#empty ??= hasFrames ? null : path;
  }

  async #takeFrames(path: string, frames: readonly Frame[], handles: Handles): Promise<void> {
    for (const frame of frames) {
      for (const record of decodeRecords(frame)) await this.#takeRecord(path, frame, record, handles);
      this.#lastBatch = frame.batch;
    }
  }

  async #takeRecord(path: string, frame: Frame, record: JournalRecord, { byHandle, damage }: Handles): Promise<void> {
    if (record.identity !== null) byHandle.set(record.handle, await this.#meet(record, record.identity));
    const stream = byHandle.get(record.handle);
    if (stream === undefined) {
      if (damage?.file === path) return;
      throw new DirectoryError(`journal file ${path} uses handle ${record.handle} without saying what it means`);
    }
    damage?.behind.add(stream.identity.id);
    if (record.kind === RecordKind.delete) this.#delete(stream);
    else if (record.kind !== RecordKind.bind && isNews(stream, frame)) follow(stream, record, path, frame.offset);
  }

  #delete(stream: JournaledStream): void {
    stream.deleted = true;
    // One that nobody could read went by its name.
    if (stream.identity.config.contentType !== ANYBODYS) return;
    for (const other of this.#streams.values()) if (other.directory === stream.directory) other.deleted = true;
  }

  #noteSuspects(heads: readonly RecordHead[], byHandle: ReadonlyMap<number, JournaledStream>, place: DamagedPlace): void {
    for (const { handle } of heads) {
      const stream = byHandle.get(handle);
      if (stream === undefined) continue;
      stream.suspect = true;
      place.suspects.add(stream.identity.id);
    }
  }

  async #meet(record: JournalRecord, identity: StreamIdentity): Promise<JournaledStream> {
    const known = this.#streams.get(identity.id);
    if (known !== undefined) return known;
    const { files, layout } = this.#options;
    const directory = layout.streamDirectory(identity.name);
    // One that can't be read is told of where its directory is looked at.
    const base = await readBase(files, identity.id, directory).catch(() => null);
    const sidecar = base === null ? null : sidecarOf(base);
    const createdHere = record.kind === RecordKind.create;
    const firstPosition = createdHere ? (identity.config.forkedFrom?.point ?? 0) : record.position;
    const own = base?.own ?? null;
    const met: JournaledStream = {
      identity,
      directory,
      firstPosition,
      createdHere,
      sidecar,
      isTold: base?.isTold === true,
      deleted: false,
      tail: own === null || own.claimed ? firstPosition : own.state.tail,
      trimmedTo: 0,
      forkChanges: new Map(),
      pendingRecords: 0,
      gap: null,
      suspect: false,
      bypassed: [],
    };
    this.#streams.set(identity.id, met);
    return met;
  }
}

/** A notice without a sidecar beside it is in the place of none. */
function sidecarOf({ own, read, isTold, isVacant }: SidecarBase): SidecarResult | null {
  if (own !== null) return { kind: "sound", sidecar: own };
  return isTold && isVacant ? null : read;
}

/** The stream's own sidecar, when it is sound. */
export function ownSidecar({ sidecar, identity }: JournaledStream): Extract<SidecarResult, { kind: "sound" }>["sidecar"] | null {
  return sidecar?.kind === "sound" && sidecar.sidecar.id === identity.id ? sidecar.sidecar : null;
}

function isNews(stream: JournaledStream, frame: Frame): boolean {
  return frame.batch > (ownSidecar(stream)?.batch ?? 0);
}

/** Goes on as recovery does: a record counts when it begins where the stream ends. */
function follow(stream: JournaledStream, record: JournalRecord, file: string, offset: number): void {
  if (stream.gap !== null) return;
  const hasBytes = record.kind === RecordKind.create || record.kind === RecordKind.append;
  if (hasBytes && record.position !== stream.tail) {
    stream.gap = { file, offset, position: record.position, tail: stream.tail };
    return;
  }
  stream.pendingRecords += 1;
  if (record.kind === RecordKind.trim) stream.trimmedTo = record.position;
  if (record.kind === RecordKind.link) stream.forkChanges.set(record.change.payload.toString(), record.position);
  if (record.kind === RecordKind.unlink) stream.forkChanges.set(record.change.payload.toString(), null);
  if (!hasBytes) return;
  stream.tail += record.bypassed?.length ?? record.change.payload.length;
  if (record.bypassed !== null) stream.bypassed.push({ ...record.bypassed, position: record.position, segmentStart: record.segmentStart });
}

async function readJournal(files: Files, path: string): Promise<Buffer> {
  try {
    return (await readWhole(files, path)) ?? Buffer.alloc(0);
  } catch (error) {
    throw errorCode(error) === "" ? error : new DirectoryError(`journal file ${path} can't be read: ${errorCode(error)}`);
  }
}
