/** What a file takes where its checkpoint keeps up: two such files hold a busy journal, each filled with zeros once. */
export const SMALL_JOURNAL_BYTES = 8 * 1024 * 1024;
/** A checkpoint syncs each stream of its file: with more streams than this, files are longer and checkpoints rarer. */
const SMALL_STREAMS = 32;

/** Payload that went past the journal counts towards a file's size at this fraction of it. */
const BYPASS_WEIGHT = 1 / 16;

/** How far a journal file is, and how its checkpoints are. */
export interface JournalPressure {
  /** The most that a file may take. */
  readonly fileBytes: number;
  /** What it takes while all is well; usually {@link SMALL_JOURNAL_BYTES}. */
  readonly smallBytes: number;
  /** Streams with records in it. */
  readonly streams: number;
  /** Whether a file before it waits for its checkpoint. */
  readonly isBehind: boolean;
}

/** At how many bytes a journal file makes way for the next: at the most where the checkpoints are behind. */
export function journalSizeBytes({ fileBytes, smallBytes, streams, isBehind }: JournalPressure): number {
  return isBehind ? fileBytes : Math.min(fileBytes, smallBytes * Math.max(1, streams / SMALL_STREAMS));
}

/** Where a file of `sizeBytes` is full, so that one more frame fits. */
export function limitBytes(sizeBytes: number, maxFrameBytes: number, bypassedBytes: number): number {
  return sizeBytes - Math.min(maxFrameBytes, sizeBytes / 4) - bypassedBytes * BYPASS_WEIGHT;
}
