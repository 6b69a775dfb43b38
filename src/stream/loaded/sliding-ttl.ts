import type { Clock } from "../../ops/clock.js";
import type { AppendRecord, MaybePromise, Settlement, Storage, StoredStream } from "../../storage/storage.js";
import { deadlineOf, TOUCH_INTERVAL_MS } from "../rules/expiry.js";

/** The storage and the clock of a sliding TTL. */
export interface SlidingTtlContext {
  readonly storage: Pick<Storage, "touch" | "barrier">;
  readonly clock: Clock;
}

/**
 * The TTL of one stream, which each append and each read restarts. While a use waits for storage the TTL does not run:
 * however slow the disk is, the client has the whole TTL from its answer on.
 */
export class SlidingTtl {
  readonly #context: SlidingTtlContext;
  readonly #stored: StoredStream;
  /** When the stream was last used: when the request came, or when it was answered if it waited for storage. */
  #usedAtMs: number;
  /** The newest time of use that was submitted to storage, and the newest that is durable. */
  #submittedMs: number;
  #notedMs: number;
  /** How many uses wait for storage. */
  #underway = 0;
  /** Resolves when the newest submitted note has settled; `null` when none is pending. */
  #noting: Promise<void> | null = null;

  /** `initial` is the creation that was submitted to storage; `null` for a stream that was loaded. */
  constructor(context: SlidingTtlContext, stored: StoredStream, initial: AppendRecord | null) {
    this.#context = context;
    this.#stored = stored;
    this.#notedMs = initial === null ? stored.state.touchedAtMs : initial.atMs;
    this.#submittedMs = this.#notedMs;
    this.#usedAtMs = initial === null ? this.#notedMs + TOUCH_INTERVAL_MS : initial.atMs;
    if (initial !== null) this.#underway = 1;
  }

  /** When the stream expires, in milliseconds since 1970. A use that waits for storage has its whole TTL ahead. */
  get deadlineMs(): number {
    const { touchedAtMs } = this.#stored.state;
    // Another server may have noted a later use, and what it notes may lie behind as well.
    const knownMs = touchedAtMs > this.#notedMs ? touchedAtMs + TOUCH_INTERVAL_MS : touchedAtMs;
    const usedAtMs = this.#underway > 0 ? this.#context.clock.nowMs() : Math.max(this.#usedAtMs, knownMs);
    return deadlineOf(this.#stored.config, usedAtMs, "sliding");
  }

  /** Whether storage knows the last use well enough: loaded from disk, the stream would not expire early. */
  get isNoted(): boolean {
    return this.#noting === null && this.#usedAtMs - this.#notedMs <= TOUCH_INTERVAL_MS;
  }

  /** An append made at `atMs` has been submitted to storage. */
  begin(atMs: number): void {
    this.#underway += 1;
    this.#used(atMs);
  }

  /** Storage has settled the append or the creation made at `atMs`. */
  end(atMs: number, how: Settlement): void {
    this.#answered();
    if (how === "durable") this.#known(atMs);
  }

  /** Somebody reads the stream. Answer the read when this is over. */
  touch(): MaybePromise<void> {
    const nowMs = this.#context.clock.nowMs();
    this.#used(nowMs);
    if (nowMs - this.#submittedMs >= TOUCH_INTERVAL_MS) this.#submit(nowMs);
    if (this.#noting === null) return;
    this.#underway += 1;
    return this.#noting.then(() => this.#answered());
  }

  /** Submits the last use, which storage must know before the stream is evicted, unless that is pending already. */
  note(): void {
    if (this.#underway === 0 && this.#noting === null && !this.isNoted) this.#submit(this.#usedAtMs);
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
    this.#submittedMs = Math.max(this.#submittedMs, atMs);
  }

  /** A note that storage refuses, or that fails, does not count. */
  #submit(atMs: number): void {
    if (!this.#context.storage.touch(this.#stored, atMs)) return;
    this.#submittedMs = atMs;
    const noting = new Promise<Settlement>((resolve) => this.#context.storage.barrier(this.#stored, resolve)).then(
      (how) => {
        if (this.#noting === noting) this.#noting = null;
        if (how === "durable") this.#known(atMs);
        else this.#submittedMs = this.#notedMs;
      },
    );
    this.#noting = noting;
  }
}
