import type { DataDirectory } from "../directory/directory.js";
import { DirectoryError } from "../directory/lock.js";
import { errorCode, isSystemError, readWhole, type Files } from "../disk/files.js";
import { journalSequenceOf, keptSequenceOf } from "../format/layout.js";
import type { Frame } from "../format/record.js";
import {
  cutOff,
  readJournalFile,
  type ExpectedJournal,
  type JournalContent,
  type JournalDamage,
} from "./journal-reader.js";

/** A file to be scanned. */
export interface ListedFile {
  readonly path: string;
  readonly sequence: number;
  /**
   * How it stands to those before it: the `next` of the journal goes on from them, what was `kept` of one has some of
   * its frames, and one that was set aside stands `alone`.
   */
  readonly standing: "next" | "kept" | "alone";
}

/** A file that is being scanned. */
export interface ScannedFile extends ListedFile {
  readonly bytes: number;
  /** Where its last sound frame ends. */
  readonly end: number;
  readonly hasFrames: boolean;
  readonly expected: ExpectedJournal;
}

/** Sound frames of a file, one after the other, and what is wrong before them. */
export interface Run {
  readonly file: ScannedFile;
  /** The whole file. */
  readonly bytes: Buffer;
  readonly damage: JournalDamage | null;
  readonly frames: readonly Frame[];
}

const NO_BYTES = Buffer.alloc(0);

/**
 * Reads the journal in order, one file in memory at a time: first what was kept of older files, then its own. A
 * `strict` scan gives each file as one run, and throws what is damaged; a `tolerant` one gives the damage too, and goes
 * on.
 */
export async function* scanJournal(directory: DataDirectory, mode: "strict" | "tolerant"): AsyncGenerator<Run> {
  for await (const run of scanFiles(directory, await journalFiles(directory))) {
    const { file, damage } = run;
    if (mode === "tolerant" || damage === null) yield run;
    // Where nothing but zeros was cut off, nothing is lost.
    else if (damage.mayHideFrames)
      throw new DirectoryError(`journal file ${file.path} is damaged at byte ${damage.offset}: ${damage.problem}`);
  }
}

/**
 * What a sound frame of the file at `path` is read as, piece by piece. Where its checksum fits and a record can't be
 * understood, that throws a {@link DirectoryError}: a program wrote it that was wrong, or another than this.
 */
export function* understood<T>(path: string, { offset }: Frame, pieces: Iterable<T>): Generator<T> {
  try {
    yield* pieces;
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof TypeError || error instanceof SyntaxError)) throw error;
    const problem = `its checksum fits, but a record in it can't be understood (${error.message})`;
    throw new DirectoryError(`journal file ${path} is damaged at byte ${offset}: ${problem}`, { cause: error });
  }
}

async function journalFiles({ files, layout }: DataDirectory): Promise<ListedFile[]> {
  const names = await files.list(layout.journal);
  const sequences = ordered(names.map(journalSequenceOf));
  // Where the file itself is still there, it has all of that.
  const kept = ordered(names.map(keptSequenceOf)).filter((sequence) => !sequences.includes(sequence));
  return [
    ...kept.map((sequence) => ({ path: layout.keptJournalFile(sequence), sequence, standing: "kept" as const })),
    ...sequences.map((sequence) => ({ path: layout.journalFile(sequence), sequence, standing: "next" as const })),
  ];
}

function ordered(sequences: readonly (number | null)[]): number[] {
  return sequences.filter((sequence) => sequence !== null).sort((left, right) => left - right);
}

/** Reads these files in order, tolerantly. Of each there is a run, also where it has no frame. */
export async function* scanFiles(
  { files, directoryId }: DataDirectory,
  listed: readonly ListedFile[],
): AsyncGenerator<Run> {
  let lastBatch: number | null = null;
  let first: ScannedFile | null = null;
  let newest: { readonly file: ScannedFile; readonly cut: JournalDamage | null } | null = null;
  let isForeign = false;
  for (const one of listed) {
    const bytes = await readJournal(files, one.path);
    const isNext = one.standing === "next";
    const isKept = one.standing === "kept";
    const expected = { sequence: one.sequence, directoryId, lastBatch: isNext ? lastBatch : null, isKept };
    const content = readJournalFile(bytes, expected);
    const hasFrames = content.frames.length > 0;
    const file: ScannedFile = { ...one, bytes: bytes.length, end: content.end, hasFrames, expected };
    const [next] = content.frames;
    // After a known batch, the next one's number shows what is missing.
    if (isNext && next !== undefined && lastBatch === null && first !== null)
      yield lostRun(first, "it has no sound record, but a later file has", next);
    isForeign ||= content.damages.at(-1)?.kind === "foreign";
    if (isNext) {
      first ??= file;
      lastBatch = content.frames.at(-1)?.batch ?? lastBatch;
      if (file.hasFrames) newest = { file, cut: cutOff(bytes, content.frames, content.end, one.sequence) };
    }
    yield* runsOf(file, bytes, content);
  }
  if (isForeign || first === null) return;
  // From its first start on a directory has a frame, and a file has the length that its frames vouch for.
  if (newest === null) yield lostRun(first, "it has no sound record", null);
  else if (newest.cut !== null) yield { file: newest.file, bytes: NO_BYTES, damage: newest.cut, frames: [] };
}

/** Every file has frames before the next one gets any. */
function lostRun(file: ScannedFile, problem: string, next: Frame | null): Run {
  return { file, bytes: NO_BYTES, damage: { kind: "lost", offset: 0, problem, next, mayHideFrames: true }, frames: [] };
}

function* runsOf(file: ScannedFile, bytes: Buffer, { frames, damages }: JournalContent): Generator<Run> {
  const starts = damages.map(({ next }) => (next === null ? frames.length : frames.indexOf(next)));
  if (starts[0] !== 0) yield { file, bytes, damage: null, frames: frames.slice(0, starts[0]) };
  for (const [index, damage] of damages.entries())
    yield { file, bytes, damage, frames: frames.slice(starts[index], starts[index + 1]) };
}

/** The bytes of a journal file, none where it is not there. */
export async function readJournal(files: Files, path: string): Promise<Buffer> {
  try {
    return (await readWhole(files, path)) ?? NO_BYTES;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new DirectoryError(`journal file ${path} can't be read (${errorCode(error)})`);
  }
}
