import { claimsFrame, decodeFrame, SECTOR_BYTES, type Frame } from "../format/record.js";

/** What a journal file should be. */
export interface ExpectedJournal {
  readonly sequence: number;
  readonly directoryId: Buffer;
  /** The batch of the frame before its first, in the file before; `null` when there is none. */
  readonly lastBatch: number | null;
  /** Whether it holds what was kept of a file: some of its frames, and one without records that ends them. */
  readonly isKept?: boolean;
}

/** What a journal file holds. */
export interface JournalContent {
  readonly frames: readonly Frame[];
  /** Where the frames end. */
  readonly end: number;
  /** What is wrong, and at which byte; `null` when nothing is. */
  readonly damage: JournalDamage | null;
}

/** A place from which on a journal file is not what was written. */
export interface JournalDamage {
  readonly offset: number;
  readonly problem: string;
}

/** What is wrong with a file without frames before one that has some: every file has frames before the next one gets any. */
export const LOST_FRAMES = "it has no sound record, but a later file has";
/** What is wrong with a journal without any frame: from its first start on, a directory has one. */
export const NO_FRAMES = "it has no sound record";

const FOREIGN = "it belongs to another directory";

/**
 * Reads the frames of a journal file. A torn frame at the end is where it ends: the write that was under way. Each frame
 * is synced before the next is written, so a sound one behind the end means that what is between them was whole once.
 */
export function readJournalFile(bytes: Buffer, expected: ExpectedJournal): JournalContent {
  const stray = strayFrames(bytes, expected);
  if (stray !== null) return { frames: [], end: 0, damage: { offset: 0, problem: stray } };
  const frames: Frame[] = [];
  let offset = 0;
  let batch = expected.lastBatch;
  while (claimsFrame(bytes, offset, expected.sequence)) {
    const frame = decodeFrame(bytes, offset);
    if (frame === null) break;
    const isForeign = !frame.directoryId.equals(expected.directoryId);
    // Behind the first frame, what does not know the directory's id is what some client wrote to look like a frame.
    if (isForeign && offset > 0) break;
    const problem = isForeign ? FOREIGN : problemOf(frame, batch, expected);
    if (problem !== null) return { frames, end: offset, damage: { offset, problem } };
    batch = frame.batch;
    frames.push(frame);
    offset = frame.nextOffset;
  }
  const { value: later } = soundFrames(bytes, offset + SECTOR_BYTES, expected).next();
  if (later !== undefined) return { frames, end: offset, damage: { offset, problem: `sound records follow at byte ${later.offset}` } };
  // It was put in its place whole: nothing of it was ever under way.
  const isCut = expected.isKept === true && (offset !== bytes.length || frames.at(-1)?.recordCount !== 0);
  return { frames, end: offset, damage: isCut ? { offset, problem: "its end is missing" } : null };
}

/**
 * What is wrong with a file that begins with another file's frames. Those of an earlier use of it have a lower sequence,
 * and are older than all that the journal holds.
 */
function strayFrames(bytes: Buffer, { sequence, directoryId, lastBatch }: ExpectedJournal): string | null {
  const first = decodeFrame(bytes, 0);
  if (first === null || first.sequence === sequence) return null;
  if (!first.directoryId.equals(directoryId)) return FOREIGN;
  const isNewer = first.sequence > sequence || (lastBatch !== null && first.batch > lastBatch);
  return isNewer ? `it is the journal file of sequence ${first.sequence}` : null;
}

function problemOf(frame: Frame, lastBatch: number | null, { isKept }: ExpectedJournal): string | null {
  const follows = lastBatch === null || (isKept === true ? frame.batch >= lastBatch : frame.batch === lastBatch + 1);
  return follows ? null : `batch ${frame.batch} follows batch ${lastBatch}`;
}

/** The sound frames of a journal file from byte `from` on, whatever is between them: what is left of a damaged file. */
export function* soundFrames(bytes: Buffer, from: number, { sequence, directoryId }: ExpectedJournal): Generator<Frame> {
  for (let offset = from; offset < bytes.length; ) {
    const frame = claimsFrame(bytes, offset, sequence) ? decodeFrame(bytes, offset) : null;
    const isOurs = frame?.directoryId.equals(directoryId) === true;
    if (isOurs) yield frame;
    offset = isOurs ? frame.nextOffset : offset + SECTOR_BYTES;
  }
}

/** Where a file that was longer ends now. */
export interface CutOff extends JournalDamage {
  /** Whether frames may have been cut off with it. */
  readonly mayHideFrames: boolean;
}

/**
 * Whether a journal file was cut off: its sound frames vouch for a length that it does not have. `end` is where they end.
 * Frames are written without a gap, so where a whole sector is left behind them that holds none, there were no more.
 */
export function cutOff(bytes: Buffer, frames: readonly Frame[], end: number, sequence: number): CutOff | null {
  const fileBytes = frames.reduce((longest, frame) => Math.max(longest, frame.fileBytes), 0);
  if (bytes.length >= fileBytes) return null;
  const isTorn = claimsFrame(bytes, end, sequence);
  const isAllThere = isTorn ? end + bytes.readUInt32LE(end + 4) <= bytes.length : end + SECTOR_BYTES <= bytes.length;
  const problem = `it ends here, but had ${fileBytes} bytes`;
  return { offset: bytes.length, problem: isAllThere ? `${problem}; its records end before, at byte ${end}` : problem, mayHideFrames: !isAllThere };
}
