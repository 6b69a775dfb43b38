import type { AppendRecord, Position, ProducerMark, ProducerStamp, StreamState } from "../../storage/storage.js";
import { MAX_PRODUCERS } from "../../storage/state.js";
import type { ProducerMemory } from "../rules/producers.js";

/**
 * Predicts a stream's state once everything submitted to storage is durable. Decisions use it, so that a request need
 * not wait for the one before. With nothing pending it is the durable state, which another server may change.
 */
export class ReservedState implements ProducerMemory {
  readonly #durable: StreamState;
  #pending = 0;
  /** Raised when a change fails: changes submitted before that and not settled yet fail as well. */
  #generation = 0;
  // Counts only while something is pending.
  #tail: Position = 0;
  #closed = false;
  #closedAtMs: number | null = null;
  #closedBy: ProducerStamp | null = null;
  #lastSeq: string | null = null;
  /** The newest pending mark and its producer's id. The map exists only when several producers are pending. */
  #mark: ProducerMark | null = null;
  #producerId = "";
  #marks: Map<string, ProducerMark> | null = null;

  constructor(durable: StreamState, initial: AppendRecord | null) {
    this.#durable = durable;
    if (initial !== null) this.reserve(initial);
  }

  get tail(): Position {
    return this.#pending === 0 ? this.#durable.tail : this.#tail;
  }

  get closed(): boolean {
    return this.#pending === 0 ? this.#durable.closed : this.#closed;
  }

  get closedAtMs(): number | null {
    return this.#pending === 0 ? this.#durable.closedAtMs : this.#closedAtMs;
  }

  get closedBy(): ProducerStamp | null {
    return this.#pending === 0 ? this.#durable.closedBy : this.#closedBy;
  }

  get lastSeq(): string | null {
    return this.#pending === 0 ? this.#durable.lastSeq : this.#lastSeq;
  }

  /** Changes submitted to storage and not settled. */
  get pending(): number {
    return this.#pending;
  }

  get producerCount(): number {
    const { producers } = this.#durable;
    let count = producers?.size ?? 0;
    const pending = this.#marks?.keys() ?? (this.#mark === null ? [] : [this.#producerId]);
    for (const id of pending) if (producers?.has(id) !== true) count += 1;
    return count;
  }

  get oldestProducerAtMs(): number {
    let gone = this.#pushedOutCount;
    for (const [, mark] of this.#unmarkedProducers()) {
      if (gone === 0) return mark.atMs;
      gone -= 1;
    }
    return Infinity;
  }

  /** How many of the unmarked producers the newcomers push out that are pending: the first of them. */
  get #pushedOutCount(): number {
    return Math.max(0, this.producerCount - MAX_PRODUCERS);
  }

  /** The durable producers of which nothing is pending, in the order of activity. */
  *#unmarkedProducers(): Generator<[id: string, mark: ProducerMark]> {
    for (const [id, mark] of this.#durable.producers ?? []) {
      const { epoch, seq } = this.#pendingMarkOf(id) ?? mark;
      if (epoch === mark.epoch && seq === mark.seq) yield [id, mark];
    }
  }

  markOf(id: string): ProducerMark | undefined {
    const durable = this.#durable.producers?.get(id);
    if (durable !== undefined && this.#isPushedOut(id)) return undefined;
    return this.#pendingMarkOf(id) ?? durable;
  }

  #pendingMarkOf(id: string): ProducerMark | null | undefined {
    return id === this.#producerId ? this.#mark : this.#marks?.get(id);
  }

  /** Whether pending newcomers push out a durable producer: one that comes back after them is a newcomer itself. */
  #isPushedOut(id: string): boolean {
    // Nearly always: there are no more newcomers than pending changes.
    if ((this.#durable.producers?.size ?? 0) + this.#pending <= MAX_PRODUCERS) return false;
    let gone = this.#pushedOutCount;
    for (const [unmarkedId] of this.#unmarkedProducers()) {
      if (gone === 0) return false;
      if (unmarkedId === id) return true;
      gone -= 1;
    }
    return false;
  }

  /** Applies `record`, which has been submitted to storage. Returns the generation to call `settle` with. */
  reserve(record: AppendRecord): number {
    if (this.#pending === 0) this.#copyDurable();
    this.#pending += 1;
    this.#tail += record.payload.length;
    if (record.seq !== null) this.#lastSeq = record.seq;
    if (record.producer !== null) {
      const { id, epoch, seq } = record.producer;
      this.#note(id, { epoch, seq, atMs: record.atMs });
    }
    if (record.closes) {
      this.#closed = true;
      this.#closedAtMs = record.atMs;
      this.#closedBy = record.producer;
    }
    return this.#generation;
  }

  #note(id: string, mark: ProducerMark): void {
    const before = this.#mark;
    if (before !== null && this.#producerId !== id) this.#marks ??= new Map([[this.#producerId, before]]);
    this.#producerId = id;
    this.#mark = mark;
    this.#marks?.set(id, mark);
  }

  /**
   * Storage has settled the change of `producer` for which `reserve` returned `generation`. When a change has failed,
   * the durable state counts again: nothing may be decided on a change that failed.
   */
  settle(generation: number, isDurable: boolean, producer: ProducerStamp | null = null): void {
    this.#pending -= 1;
    const isFirstFailure = !isDurable && generation === this.#generation;
    if (isFirstFailure) this.#generation += 1;
    if (isFirstFailure) this.#copyDurable();
    if (isFirstFailure || this.#pending === 0) this.#forgetMarks();
    else if (isDurable && producer !== null) this.#forgetMark(producer);
  }

  /** Kept on while others are pending, the mark would count for one that newcomers have pushed out since. */
  #forgetMark({ id, epoch, seq }: ProducerStamp): void {
    const mark = this.#pendingMarkOf(id);
    if (mark?.epoch !== epoch || mark.seq !== seq) return;
    this.#marks?.delete(id);
    if (id === this.#producerId) this.#mark = null;
  }

  #copyDurable(): void {
    this.#tail = this.#durable.tail;
    this.#closed = this.#durable.closed;
    this.#closedAtMs = this.#durable.closedAtMs;
    this.#closedBy = this.#durable.closedBy;
    this.#lastSeq = this.#durable.lastSeq;
  }

  #forgetMarks(): void {
    this.#mark = null;
    this.#producerId = "";
    this.#marks = null;
  }
}
