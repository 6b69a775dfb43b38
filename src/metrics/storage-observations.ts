// Measures what the storage engine does.

import { stopwatchMs } from "../ops/clock.js";
import type { StorageObserver } from "../storage/figures.js";
import { COUNT_BOUNDS, DURATION_BOUNDS, Histogram, LONG_DURATION_BOUNDS } from "./histogram.js";

/** Takes the times of syncs and checkpoints, and counts what is written. */
export class StorageObservations implements StorageObserver {
  readonly syncs = new Histogram(DURATION_BOUNDS);
  readonly batches = new Histogram(COUNT_BOUNDS);
  readonly checkpoints = new Histogram(LONG_DURATION_BOUNDS);
  journalBytes = 0;
  failedBatches = 0;
  readonly #nowMs: () => number;
  #sentAtMs = 0;

  /** `nowMs` is a clock with fractions of a millisecond that never goes back. */
  constructor(nowMs: () => number = stopwatchMs) {
    this.#nowMs = nowMs;
  }

  batchSent(): void {
    this.#sentAtMs = this.#nowMs();
  }

  batchWritten(entries: number, bytes: number): void {
    this.syncs.observe((this.#nowMs() - this.#sentAtMs) / 1000);
    this.batches.observe(entries);
    this.journalBytes += bytes;
  }

  messageStored(ms: number, entries: number, bytes: number): void {
    this.syncs.observe(ms / 1000);
    this.batches.observe(entries);
    this.journalBytes += bytes;
  }

  batchFailed(): void {
    this.failedBatches += 1;
  }

  checkpointed(ms: number): void {
    this.checkpoints.observe(ms / 1000);
  }
}
