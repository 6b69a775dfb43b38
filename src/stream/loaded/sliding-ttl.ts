import type { Clock } from "../../ops/clock.js";
import type { AppendRecord, MaybePromise, Settlement, Storage, StoredStream } from "../../storage/storage.js";
import { deadlineOf, TOUCH_INTERVAL_MS } from "../rules/expiry.js";

/** What a sliding TTL needs. */
export interface SlidingTtlContext {
  readonly storage: Pick<Storage, "touch" | "barrier">;
  readonly clock: Clock;
}

/**
 * The TTL of one stream, which each append and each read restarts. Of what waits for storage it counts from the answer:
 * who hears of it late, since the disk was slow, has the whole TTL from then on.
 */
export class SlidingTtl {
  readonly #context: SlidingTtlContext;
  readonly #stored: StoredStream;
  /** When it was last used: when that was asked for, or answered where it had to wait for storage. */
  #usedAtMs: number;
  /** The newest time of a use that storage was handed, and the newest that it knows. */
  #handedInMs: number;
  #notedMs: number;
  /** The uses that wait for storage. */
  #underway = 0;
  /** The newest note on its way to the disk. */
  #noting: Promise<void> | null = null;

  /** `initial` is the creation that was handed to storage, `null` for a stream that storage had already. */
  constructor(context: SlidingTtlContext, stored: StoredStream, initial: AppendRecord | null) {
    this.#context = context;
    this.#stored = stored;
    this.#notedMs = initial === null ? stored.state.touchedAtMs : initial.atMs;
    this.#handedInMs = this.#notedMs;
    this.#usedAtMs = initial === null ? this.#notedMs + TOUCH_INTERVAL_MS : initial.atMs;
    if (initial !== null) this.#underway = 1;
  }

  /** When it is over, in milliseconds since 1970: not before anything that is under way has had its whole TTL. */
  get deadlineMs(): number {
    const usedAtMs = this.#underway > 0 ? this.#context.clock.nowMs() : this.#usedAtMs;
    return deadlineOf(this.#stored.config, usedAtMs, "sliding");
  }

  /** Whether storage knows enough: read from disk, the stream would not expire early. */
  get isNoted(): boolean {
    return this.#noting === null && this.#usedAtMs - this.#notedMs <= TOUCH_INTERVAL_MS;
  }

  /** An append of that time has been handed to storage. */
  begin(atMs: number): void {
    this.#underway += 1;
    this.#used(atMs);
  }

  /** Storage has settled an append, or the creation, of that time. */
  end(atMs: number, how: Settlement): void {
    this.#answered();
    if (how === "durable") this.#known(atMs);
  }

  /** Somebody reads the stream, and may be answered when this is over. */
  touch(): MaybePromise<void> {
    const nowMs = this.#context.clock.nowMs();
    this.#used(nowMs);
    if (nowMs - this.#handedInMs >= TOUCH_INTERVAL_MS) this.#handIn(nowMs);
    if (this.#noting === null) return;
    this.#underway += 1;
    return this.#noting.then(() => this.#answered());
  }

  /** Hands in what storage has yet to know before memory may let go of the stream, unless that is on its way. */
  note(): void {
    if (this.#underway === 0 && this.#noting === null && !this.isNoted) this.#handIn(this.#usedAtMs);
  }

  #used(atMs: number): void {
    this.#usedAtMs = Math.max(this.#usedAtMs, atMs);
  }

  #answered(): void {
    this.#underway -= 1;
    this.#used(this.#context.clock.nowMs());
  }

  #known(atMs: number): void {
    this.#notedMs = Math.max(this.#notedMs, atMs);
    this.#handedInMs = Math.max(this.#handedInMs, atMs);
  }

  /** A note that storage refuses, or that fails, counts as none. */
  #handIn(atMs: number): void {
    if (!this.#context.storage.touch(this.#stored, atMs)) return;
    this.#handedInMs = atMs;
    const noting = new Promise<Settlement>((resolve) => this.#context.storage.barrier(this.#stored, resolve)).then(
      (how) => {
        if (this.#noting === noting) this.#noting = null;
        if (how === "durable") this.#known(atMs);
        else this.#handedInMs = this.#notedMs;
      },
    );
    this.#noting = noting;
  }
}
