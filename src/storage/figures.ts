// What a storage engine tells of itself to whoever measures it.

/** Is told what an engine does, as it does it. Each call must be cheap: it stands between a sync and its answers. */
export interface StorageObserver {
  /** A batch is on its way to the disk; there is one at a time. */
  batchSent(): void;
  /** It is durable, with so many changes, and so many bytes of the journal. */
  batchWritten(entries: number, bytes: number): void;
  /** A message with so many changes, and a body of so many bytes, is stored by a cluster, in `ms` milliseconds. */
  messageStored(ms: number, entries: number, bytes: number): void;
  /** It could not be written. */
  batchFailed(): void;
  /** A journal file was brought to the streams' own files, in `ms` milliseconds. */
  checkpointed(ms: number): void;
}

/** Figures of an engine, as they are now. Counts are since the start; sizes in bytes. */
export interface StorageFigures {
  /** Payload that became durable, of appends and creations. */
  readonly appendedBytes: number;
  /** Payload that waits for the disk. */
  readonly queuedBytes: number;
  /** Of the room that the journal may take before it waits for a checkpoint, from 0 to 1. */
  readonly journalFill: number;
  /** Full journal files that wait for their checkpoint. */
  readonly sealedFiles: number;
  readonly cacheBytes: number;
  readonly cacheLimitBytes: number;
  /** What of the cache no segment has yet. */
  readonly unwrittenBytes: number;
  /** How often retention dropped the oldest segments of a stream, and how many bytes. */
  readonly trims: number;
  readonly trimmedBytes: number;
  /** What the start took to bring the directory back, in milliseconds, and how many records the journal had. */
  readonly recoveryMs: number;
  readonly recoveredRecords: number;
  /** For how long the disk has not answered the write that changes wait for; 0 where it has answered. */
  readonly unansweredSeconds: number;
  /** Of an engine on a cluster only. */
  readonly cluster?: ClusterFigures;
}

/** What became of the messages that an engine published, counted since the start. */
export interface ClusterFigures {
  /**
   * By how they ended: stored; another was first; there was no room; no server took them; or nobody could say in time.
   */
  readonly outcomes: Readonly<Record<"stored" | "moved" | "full" | "untaken" | "unknown", number>>;
  /** Changes that were decided again, as another front end was first. */
  readonly decidedAgain: number;
}
