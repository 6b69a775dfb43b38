import type { Clock, Timer } from "../../ops/clock.js";
import type { StreamConfig } from "../../storage/storage.js";

/** `sliding`: a TTL restarts with each append and read; `fixed`: it counts from creation. */
export type TtlMode = "sliding" | "fixed";

/**
 * How much older than the true last use the stored one may be. Reads are noted in storage at most this often, so a
 * loaded stream lives this much longer: it never expires early.
 */
export const TOUCH_INTERVAL_MS = 500;

/** When a stream expires, in milliseconds since 1970; `Infinity` when it does not. */
export function deadlineOf(config: StreamConfig, touchedAtMs: number, mode: TtlMode): number {
  if (config.expiresAtMs !== null) return config.expiresAtMs;
  if (config.ttlSeconds === null) return Infinity;
  return (mode === "sliding" ? touchedAtMs : config.createdAtMs) + config.ttlSeconds * 1000;
}

/** Whether reads move the deadline. */
export function slides(config: StreamConfig, mode: TtlMode): boolean {
  return mode === "sliding" && config.ttlSeconds !== null;
}

/** An item that expires. */
export interface Expiring {
  /** In milliseconds since 1970. It may move later between two looks, never earlier. */
  readonly deadlineMs: number;
}

const TICK_MS = 250;
/**
 * The most work in one turn of the event loop, in items looked at, and how many looks an expiry counts as. It limits
 * how long appends wait, and allows 2,000 expiries a second, which the disk can take beside everything else.
 */
const MAX_LOOKS = 400;
const EXPIRY_LOOKS = 20;
/** The pause between two turns while more is due. */
const BUSY_PAUSE_MS = 10;

/**
 * Calls `expire` for each item soon after its deadline; that may add it again. Items wait in buckets of one tick, by
 * the deadline they had when they were put there: one whose deadline has moved is put in a later bucket when its turn
 * comes.
 */
export class ExpiryQueue<T extends Expiring> {
  readonly #clock: Clock;
  readonly #expire: (item: T) => void;
  readonly #buckets = new Map<number, Set<T>>();
  readonly #bucketOf = new Map<T, number>();
  #tick: number;
  #timer: Timer | null = null;
  #isStopped = false;

  constructor(clock: Clock, expire: (item: T) => void) {
    this.#clock = clock;
    this.#expire = expire;
    this.#tick = Math.floor(clock.nowMs() / TICK_MS);
  }

  /** How many items wait. */
  get size(): number {
    return this.#bucketOf.size;
  }

  /**
   * Adds `item`, if it ever expires; one that waits already, by the deadline that it has now. It never comes into the
   * bucket being emptied: one that can't expire now, and is added again, would hold up all others.
   */
  add(item: T): void {
    this.remove(item);
    if (item.deadlineMs === Infinity || this.#isStopped) return;
    const nextTick = Math.floor(this.#clock.nowMs() / TICK_MS) + 1;
    const tick = Math.max(Math.ceil(item.deadlineMs / TICK_MS), nextTick, this.#tick);
    const bucket = this.#buckets.get(tick);
    if (bucket === undefined) this.#buckets.set(tick, new Set([item]));
    else bucket.add(item);
    this.#bucketOf.set(item, tick);
    this.#schedule(TICK_MS);
  }

  remove(item: T): void {
    const tick = this.#bucketOf.get(item);
    if (tick === undefined) return;
    this.#bucketOf.delete(item);
    const bucket = this.#buckets.get(tick);
    bucket?.delete(item);
    if (bucket?.size === 0) this.#buckets.delete(tick);
  }

  /** Stops the timer; nothing expires any more, nor does what is added later. */
  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = null;
    this.#buckets.clear();
    this.#bucketOf.clear();
  }

  #schedule(delayMs: number): void {
    if (this.#timer !== null || this.#bucketOf.size === 0) return;
    this.#timer = this.#clock.after(delayMs, () => {
      const isMoreDue = this.#run();
      this.#timer = null;
      this.#schedule(isMoreDue ? BUSY_PAUSE_MS : TICK_MS);
    });
  }

  /** Returns whether more is due. */
  #run(): boolean {
    const nowMs = this.#clock.nowMs();
    const nowTick = Math.floor(nowMs / TICK_MS);
    for (let looks = 0; this.#tick <= nowTick && looks < MAX_LOOKS;) {
      const next = this.#buckets.get(this.#tick)?.values().next();
      if (next === undefined || next.done === true) {
        this.#tick = this.#buckets.size > nowTick - this.#tick ? this.#tick + 1 : this.#earliestTick(nowTick + 1);
        continue;
      }
      looks += this.#look(next.value, nowMs);
    }
    return this.#tick <= nowTick;
  }

  /** The first tick that has a bucket; after a long pause this is faster than counting up. */
  #earliestTick(limit: number): number {
    let earliest = limit;
    for (const tick of this.#buckets.keys()) earliest = Math.min(earliest, tick);
    return earliest;
  }

  /** Returns how many looks this counts as. */
  #look(item: T, nowMs: number): number {
    this.remove(item);
    if (item.deadlineMs > nowMs) {
      this.add(item);
      return 1;
    }
    this.#expire(item);
    return EXPIRY_LOOKS;
  }
}
