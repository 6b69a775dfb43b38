import type { AppendRecord, Position, ProducerMark, ProducerStamp, StreamState } from "./storage.js";

/** Most producers that one stream remembers; one more pushes out the least recently active. */
export const MAX_PRODUCERS = 4096;

/**
 * A stream's state as records make it. Applying the same records in the same order gives the same state, in normal
 * running, in what is reserved ahead of the disk, and in recovery.
 */
export class MutableState implements StreamState {
  tail: Position;
  closed = false;
  closedAtMs: number | null = null;
  closedBy: ProducerStamp | null = null;
  lastSeq: string | null = null;
  producers: Map<string, ProducerMark> | null = null;
  touchedAtMs = 0;

  /** Before any record; a fork begins where its source's bytes end for it. */
  constructor(tail: Position = 0) {
    this.tail = tail;
  }

  /** Applies `record` to the state; `length` is its payload's length, also where the payload itself is elsewhere. */
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
    // Deleting first moves the producer to the end: the map's order is the order of activity. One alone is there
    // already.
    if (producers.size > 1) producers.delete(stamp.id);
    producers.set(stamp.id, { epoch: stamp.epoch, seq: stamp.seq, atMs });
    if (producers.size <= MAX_PRODUCERS) return;
    for (const leastRecent of producers.keys()) {
      producers.delete(leastRecent);
      return;
    }
  }
}
