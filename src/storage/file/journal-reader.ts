import { claimsFrame, decodeFrame, SECTOR_BYTES, type Frame } from "./record.js";

/** What a journal file should be. */
export interface ExpectedJournal {
  readonly sequence: number;
  readonly directoryId: Buffer;
  /** The batch of the frame before its first, in the file before; `null` when there is none. */
  readonly lastBatch: number | null;
}

/** What a journal file holds. */
export interface JournalContent {
  readonly frames: readonly Frame[];
  /** Where the frames end. */
  readonly end: number;
  /** What is wrong, and at which byte; `null` when nothing is. */
  readonly damage: { readonly offset: number; readonly problem: string } | null;
}

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
    const problem = isForeign ? FOREIGN : problemOf(frame, batch);
    if (problem !== null) return { frames, end: offset, damage: { offset, problem } };
    batch = frame.batch;
    frames.push(frame);
    offset = frame.nextOffset;
  }
  const later = laterFrame(bytes, offset, expected);
  const damage = later === null ? null : { offset, problem: `sound records follow at byte ${later}` };
  return { frames, end: offset, damage };
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

function problemOf(frame: Frame, lastBatch: number | null): string | null {
  return lastBatch === null || frame.batch === lastBatch + 1 ? null : `batch ${frame.batch} follows batch ${lastBatch}`;
}

function laterFrame(bytes: Buffer, end: number, { sequence, directoryId }: ExpectedJournal): number | null {
  for (let offset = end + SECTOR_BYTES; offset < bytes.length; offset += SECTOR_BYTES) {
    if (claimsFrame(bytes, offset, sequence) && decodeFrame(bytes, offset)?.directoryId.equals(directoryId) === true) return offset;
  }
  return null;
}
