import type { Clock } from "../ops/clock.js";
import type { AppendRecord, MaybePromise, Settlement, Storage, StoredStream } from "../storage/storage.js";
import { deadlineOf, TOUCH_INTERVAL_MS } from "./expiry.js";

/** What a sliding TTL needs. */
export interface SlidingTtlContext {
  readonly storage: Storage;
  readonly clock: Clock;
}

/**
 * The TTL of one stream, which each append and each read restarts. It begins when that use is answered: who hears of it
 * late, since the disk was slow, has the whole TTL from then on.
 */
export class SlidingTtl {
  readonly #context: SlidingTtlContext;
  readonly #stored: StoredStream;
  /** When the newest use was asked for, and the newest of those that storage knows of. */
  #touchedAtMs: number;
  #notedTouchMs: number;
  /** When the newest of those that had to wait for storage was answered. */
  #answeredAtMs = -Infinity;
  /** The uses that wait for storage. */
  #underway = 0;
  /** The note of a read, on its way to the disk. */
  #noting: Promise<void> | null = null;

  /** `initial` is the creation that was handed to storage, `null` for a stream that storage had already. */
  constructor(context: SlidingTtlContext, stored: StoredStream, initial: AppendRecord | null) {
    this.#context = context;
    this.#stored = stored;
    this.#notedTouchMs = initial === null ? stored.state.touchedAtMs : initial.atMs;
    this.#touchedAtMs = initial === null ? this.#notedTouchMs + TOUCH_INTERVAL_MS : initial.atMs;
    if (initial !== null) this.#underway = 1;
  }

  /** When it is over, in milliseconds since 1970: not before anything that is under way has had its whole TTL. */
  get deadlineMs(): number {
    const usedAtMs = this.#underway > 0 ? this.#context.clock.nowMs() : Math.max(this.#touchedAtMs, this.#answeredAtMs);
    return deadlineOf(this.#stored.config, usedAtMs, "sliding");
  }

  /** Whether storage knows enough: read from disk, the stream would not expire early. */
  get isNoted(): boolean {
    return this.#noting === null && this.#touchedAtMs - this.#notedTouchMs <= TOUCH_INTERVAL_MS;
  }

  /** An append of that time has been handed to storage. */
  begin(atMs: number): void {
    this.#underway += 1;
    this.#touchedAtMs = Math.max(this.#touchedAtMs, atMs);
  }

  /** Storage has settled an append, or the creation, of that time. */
  end(atMs: number, how: Settlement): void {
    this.#underway -= 1;
    this.#answeredAtMs = this.#context.clock.nowMs();
    if (how === "durable") this.#notedTouchMs = Math.max(this.#notedTouchMs, atMs);
  }

  /**
   * Somebody reads the stream. The read may be answered when this is over, so that no crash can take back what it did
   * for the stream's life.
   */
  touch(): MaybePromise<void> {
    const nowMs = this.#context.clock.nowMs();
    this.#touchedAtMs = Math.max(this.#touchedAtMs, nowMs);
    if (nowMs - this.#notedTouchMs >= TOUCH_INTERVAL_MS && this.#context.storage.touch(this.#stored, nowMs)) this.#note(nowMs);
    if (this.#noting !== null) return this.#noting;
  }

  /** Waits for the note of a touch that was handed in; one that failed counts as none. */
  #note(atMs: number): void {
    const before = this.#notedTouchMs;
    this.#notedTouchMs = atMs;
    this.#underway += 1;
    const noting = new Promise<Settlement>((resolve) => this.#context.storage.barrier(this.#stored, resolve)).then((how) => {
      if (this.#noting === noting) this.#noting = null;
      if (how !== "durable" && this.#notedTouchMs === atMs) this.#notedTouchMs = before;
      this.end(atMs, how);
    });
    this.#noting = noting;
  }
}
