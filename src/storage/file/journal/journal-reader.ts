import { alignUp, claimsFrame, decodeFrame, SECTOR_BYTES, type Frame } from "../format/record.js";

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
  /** Its sound frames, also those after damage. */
  readonly frames: readonly Frame[];
  /** Where the last of them ends. */
  readonly end: number;
  /** What is wrong, in order; each is before another frame. */
  readonly damages: readonly JournalDamage[];
}

/** A place from which on a journal file is not what was written. */
export interface JournalDamage {
  /**
   * `foreign`: the file has only another's frames. `gap`: there is none where one was. `lost`: the file has none, but
   * it, or one between it and the next file with frames, must have had some. `cut`: it was cut off, perhaps behind its
   * last frame.
   */
  readonly kind: "foreign" | "gap" | "lost" | "cut";
  readonly offset: number;
  readonly problem: string;
  /** The sound frame after it, which may be another file's; `null` without one. */
  readonly next: Frame | null;
  /** Whether frames may be missing. */
  readonly mayHideFrames: boolean;
}

const FOREIGN = "it belongs to another directory";

/**
 * Reads the frames of a journal file. A torn frame at the end is where it ends: the write that was under way. Each
 * frame is synced before the next is written, so a sound one after a torn one means that what is between them was whole
 * once.
 */
export function readJournalFile(bytes: Buffer, expected: ExpectedJournal): JournalContent {
  const frames: Frame[] = [];
  const damages: JournalDamage[] = [];
  let problem = problemAtStart(bytes, expected);
  let end = 0;
  let batch = expected.lastBatch;
  for (const frame of soundFrames(bytes, expected)) {
    problem ??=
      frame.offset === end ? problemOf(frame, batch, expected) : `sound records follow at byte ${frame.offset}`;
    if (problem !== null) damages.push({ kind: "gap", offset: end, problem, next: frame, mayHideFrames: true });
    problem = null;
    frames.push(frame);
    end = frame.nextOffset;
    batch = frame.batch;
  }
  // It was put in its place whole: nothing of it was ever under way.
  const isCut = expected.isKept === true && (end !== bytes.length || frames.at(-1)?.recordCount !== 0);
  problem ??= isCut ? "its end is missing" : null;
  if (problem !== null)
    damages.push({ kind: isCut ? "gap" : "foreign", offset: end, problem, next: null, mayHideFrames: true });
  return { frames, end, damages };
}

/**
 * What is wrong with a file that begins with another file's frames. Those of an earlier use of it have a lower
 * sequence, and are older than all that the journal holds.
 */
function problemAtStart(bytes: Buffer, { sequence, directoryId, lastBatch }: ExpectedJournal): string | null {
  const first = decodeFrame(bytes, 0);
  if (first === null) return null;
  if (!first.directoryId.equals(directoryId)) return FOREIGN;
  const isNewer =
    first.sequence > sequence || (first.sequence < sequence && lastBatch !== null && first.batch > lastBatch);
  return isNewer ? `it is the journal file of sequence ${first.sequence}` : null;
}

function problemOf(frame: Frame, lastBatch: number | null, { isKept }: ExpectedJournal): string | null {
  const follows = lastBatch === null || (isKept === true ? frame.batch >= lastBatch : frame.batch === lastBatch + 1);
  return follows ? null : `batch ${frame.batch} follows batch ${lastBatch}`;
}

/**
 * The sound frames of a journal file, whatever is between them. What does not know the directory's id is what some
 * client wrote to look like a frame.
 */
function* soundFrames(bytes: Buffer, { sequence, directoryId }: ExpectedJournal): Generator<Frame> {
  for (let offset = 0; offset < bytes.length;) {
    const frame = claimsFrame(bytes, offset, sequence) ? decodeFrame(bytes, offset) : null;
    const isOurs = frame?.directoryId.equals(directoryId) === true;
    if (isOurs) yield frame;
    offset = isOurs ? frame.nextOffset : offset + SECTOR_BYTES;
  }
}

/**
 * Whether a journal file was cut off: its sound frames vouch for a length that it does not have. `end` is where they
 * end. Frames are written without a gap, so where a whole sector is left that holds none, behind them and the one that
 * was under way, there were no more.
 */
export function cutOff(bytes: Buffer, frames: readonly Frame[], end: number, sequence: number): JournalDamage | null {
  const fileBytes = frames.reduce((longest, frame) => Math.max(longest, frame.fileBytes), 0);
  if (bytes.length >= fileBytes) return null;
  const torn = claimsFrame(bytes, end, sequence) ? alignUp(bytes.readUInt32LE(end + 4)) : 0;
  const isAllThere = end + torn + SECTOR_BYTES <= bytes.length;
  const problem = `it ends here, but had ${fileBytes} bytes`;
  return {
    kind: "cut",
    offset: bytes.length,
    problem: isAllThere ? `${problem}; its records end before, at byte ${end}` : problem,
    next: null,
    mayHideFrames: !isAllThere,
  };
}
