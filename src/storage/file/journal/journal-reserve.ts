// What a journal file keeps for changes that make room, so that a full disk does not refuse those.

import { RecordKind } from "../format/record.js";
import { writesRecord, type FrameEncoder } from "./frame-encoder.js";
import type { JournalEntry } from "./journal-entry.js";
import type { JournalFile } from "./journal-file.js";

/** These take nothing but their record, and let files go. */
const FREEING: ReadonlySet<JournalEntry["kind"]> = new Set([RecordKind.delete, RecordKind.softDelete, RecordKind.trim]);

/** Whether all that is to be written makes room, and the first of it fits into what the file has on disk already. */
export function fitsReserve(file: JournalFile | null, queue: readonly JournalEntry[], encoder: FrameEncoder): boolean {
  const entries = queue.filter(writesRecord);
  const [first] = entries;
  if (file === null || first === undefined || !entries.every(({ kind }) => FREEING.has(kind))) return false;
  return file.fits(encoder.frameLengthOf(first, file));
}
