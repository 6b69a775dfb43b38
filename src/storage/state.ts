import type { AppendRecord, Position, ProducerMark, ProducerStamp, StreamState } from "./storage.js";

/** The most producers that one stream remembers; one more replaces the least recently active. */
export const MAX_PRODUCERS = 4096;

/**
 * A stream's state, built from its records. The same records in the same order always give the same state, while the
 * server runs and in recovery.
 */
export class MutableState implements StreamState {
  tail: Position;
  closed = false;
  closedAtMs: number | null = null;
  closedBy: ProducerStamp | null = null;
  lastSeq: string | null = null;
  producers: Map<string, ProducerMark> | null = null;
  touchedAtMs = 0;

  /** The state before any record. A fork begins at its point, where the bytes that it shares end. */
  constructor(tail: Position = 0) {
    this.tail = tail;
  }

  /** Applies `record`; `length` is the length of its payload, which itself is not needed. */
  apply(record: Omit<AppendRecord, "payload">, length: number): void {
    this.tail += length;
    if (record.seq !== null) this.lastSeq = record.seq;
    if (record.producer !== null) this.#mark(record.producer, record.atMs);
    if (record.closes) {
      this.closed = true;
      this.closedAtMs = record.atMs;
      this.closedBy = record.producer;
    }
    if (record.atMs > this.touchedAtMs) this.touchedAtMs = record.atMs;
  }

  /** The state as it is now, which later records do not change. */
  clone(): MutableState {
    const copy = new MutableState();
    copy.tail = this.tail;
    copy.closed = this.closed;
    copy.closedAtMs = this.closedAtMs;
    copy.closedBy = this.closedBy;
    copy.lastSeq = this.lastSeq;
    copy.producers = this.producers === null ? null : new Map(this.producers);
    copy.touchedAtMs = this.touchedAtMs;
    return copy;
  }

  #mark(stamp: ProducerStamp, atMs: number): void {
    const producers = (this.producers ??= new Map());
    // Deleting first moves the producer to the end: the map is in the order of activity. A single producer needs no
    // move.
    if (producers.size > 1) producers.delete(stamp.id);
    producers.set(stamp.id, { epoch: stamp.epoch, seq: stamp.seq, atMs });
    if (producers.size <= MAX_PRODUCERS) return;
    for (const leastRecent of producers.keys()) {
      producers.delete(leastRecent);
      return;
    }
  }
}
