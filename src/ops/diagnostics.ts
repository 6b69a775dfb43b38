// Reports the larger steps of the storage: in the log, and on channels (docs/library.md, Diagnostics).

import { channel } from "node:diagnostics_channel";
import type { Log } from "./log.js";

const BATCH = channel("streamdir:batch");
const CHECKPOINT = channel("streamdir:checkpoint");
const RECOVERY = channel("streamdir:recovery");
const EVICTION = channel("streamdir:eviction");

/** A sync that takes longer than this is worth a line in the log. */
const SLOW_SYNC_MS = 1000;

/** Logs that a sync, also one that failed, took long. */
export function reportSync(log: Log, syncMs: number): void {
  if (syncMs > SLOW_SYNC_MS) log.warn("the disk is slow", { syncMs });
}

/** Reports that a batch is durable: how many changes it has, the bytes written, and the time taken. */
export function reportBatch(log: Log, entries: number, bytes: number, ms: number): void {
  if (BATCH.hasSubscribers) BATCH.publish({ entries, bytes, ms });
  if (log.isDebug === true) log.debug("batch written", { entries, bytes, ms });
}

/** Reports that all of a journal file is in the files of its streams. */
export function reportCheckpoint(log: Log, file: number, streams: number, ms: number): void {
  log.debug("checkpoint", { file, streams, ms });
  if (CHECKPOINT.hasSubscribers) CHECKPOINT.publish({ file, streams, ms });
}

/** Reports that a start has recovered from the journal; does nothing where there was no record. */
export function reportRecovery(log: Log, streams: number, records: number, bytes: number, ms: number): void {
  if (records === 0) return;
  log.info("recovered from the journal", { streams, records, bytes, ms });
  if (RECOVERY.hasSubscribers) RECOVERY.publish({ streams, records, bytes, ms });
}

/** Publishes that idle streams were evicted, and how many are loaded now; does nothing for no stream. */
export function reportEviction(streams: number, loaded: number): void {
  if (streams > 0 && EVICTION.hasSubscribers) EVICTION.publish({ streams, loaded });
}
