import { readFully } from "../disk/files.js";
import type { JournalEntry } from "./journal-entry.js";
import type { JournalFile } from "./journal-file.js";
import { NO_FRAME } from "../format/record.js";

/** A frame on its way to the disk, and what it holds. */
export interface SentFrame {
  readonly file: JournalFile;
  readonly offset: number;
  readonly frame: Buffer;
  readonly entries: JournalEntry[];
  readonly batch: number;
  /** It is in the reserve: that it could be written does not say that others can. */
  readonly isInReserve: boolean;
  /** It failed, but was found to be there. */
  isThere: boolean;
}

/**
 * A frame whose sync found no room may be in the file. It is overwritten before anybody is told that it is not there.
 * Rejects with the disk's error.
 */
export async function takeBack(sent: SentFrame): Promise<void> {
  const { file, offset, frame } = sent;
  sent.isThere ||= (await readFully(file.file, offset, frame.length)).equals(frame);
  if (sent.isThere) await file.file.write(NO_FRAME, offset);
}
