// Limits how much each client may do in a second.

import type { Rate } from "../../net/rate.js";

/** Clients that are remembered, each with 100 to 170 bytes. */
const MAX_KEYS = 100_000;
const INITIAL_KEYS = 256;
const NONE = -1;
/** The buckets count thousandths: so each millisecond adds a whole number, and nothing is rounded. */
const PARTS = 1000;

/**
 * Two buckets for each key, one of requests and one of bytes, each with room for one second's worth. A request takes
 * one from the first, and comes in when the second is not empty: what it brings or is sent is charged afterwards, and
 * may leave a debt that time pays. So a body may be larger than the rate, and its client waits after it.
 *
 * At most {@link MAX_KEYS} keys are remembered; the least recently used is forgotten first, and a key that is new or
 * forgotten begins with full buckets.
 */
export class RateLimiter {
  readonly #own: Rate | null;
  readonly #maxKeys: number;
  readonly #slots = new Map<string, number>();
  /** By slot. Numbers in arrays of objects would each be an object. */
  readonly #keys: string[] = [];
  #requests = new Float64Array(INITIAL_KEYS);
  #bytes = new Float64Array(INITIAL_KEYS);
  #filledAtMs = new Float64Array(INITIAL_KEYS);
  /** The slots in a ring in the order of their use, `#oldest` first. */
  #newer = new Int32Array(INITIAL_KEYS);
  #older = new Int32Array(INITIAL_KEYS);
  #oldest = NONE;

  /** `own` is the rate of those that have none of their own; `null` where they have no limit. */
  constructor(own: Rate | null, maxKeys = MAX_KEYS) {
    this.#own = own;
    this.#maxKeys = maxKeys;
  }

  /** Keys that are remembered. */
  get size(): number {
    return this.#keys.length;
  }

  /**
   * 0 when a request of `key` is admitted, which takes it from its bucket; else after how many seconds it would be.
   * `rate` is `null` for the server's own.
   */
  admit(key: string, rate: Rate | null, nowMs: number): number {
    const limit = rate ?? this.#own;
    if (limit === null) return 0;
    const slot = this.#fill(key, limit, nowMs);
    const requests = this.#requests[slot] ?? 0;
    const bytes = this.#bytes[slot] ?? 0;
    const hasBytes = limit.bytes === null || bytes > 0;
    if (requests < PARTS || !hasBytes) return waitSeconds(limit, requests, bytes);
    this.#requests[slot] = requests - PARTS;
    return 0;
  }

  /** Whether a request of `key` would be refused now, and after how many seconds it would not; takes nothing. */
  waitOf(key: string, nowMs: number): number {
    const limit = this.#own;
    if (limit === null || !this.#slots.has(key)) return 0;
    const slot = this.#fill(key, limit, nowMs);
    return waitSeconds(limit, this.#requests[slot] ?? 0, limit.bytes === null ? 1 : (this.#bytes[slot] ?? 0));
  }

  /** Takes `bytes` from the bucket of `key`, also where it has fewer. */
  charge(key: string, rate: Rate | null, bytes: number, nowMs: number): void {
    const limit = rate ?? this.#own;
    if (limit === null || limit.bytes === null) return;
    const slot = this.#fill(key, limit, nowMs);
    this.#bytes[slot] = (this.#bytes[slot] ?? 0) - bytes * PARTS;
  }

  /** The slot of `key`, with its buckets as time has filled them, as the one used last. */
  #fill(key: string, { requests, bytes }: Rate, nowMs: number): number {
    const maxBytes = bytes ?? 0;
    const slot = this.#slots.get(key);
    if (slot === undefined) return this.#add(key, requests, maxBytes, nowMs);
    const passedMs = Math.max(0, nowMs - (this.#filledAtMs[slot] ?? 0));
    this.#filledAtMs[slot] = nowMs;
    this.#requests[slot] = Math.min(requests * PARTS, (this.#requests[slot] ?? 0) + passedMs * requests);
    this.#bytes[slot] = Math.min(maxBytes * PARTS, (this.#bytes[slot] ?? 0) + passedMs * maxBytes);
    this.#use(slot);
    return slot;
  }

  #add(key: string, requests: number, bytes: number, nowMs: number): number {
    const slot = this.#keys.length < this.#maxKeys ? this.#newSlot() : this.#oldestSlot();
    // A part of a longer text, like that of a header, would keep all of it in memory.
    const copy = Buffer.from(key).toString();
    this.#keys[slot] = copy;
    this.#slots.set(copy, slot);
    this.#requests[slot] = requests * PARTS;
    this.#bytes[slot] = bytes * PARTS;
    this.#filledAtMs[slot] = nowMs;
    return slot;
  }

  /** A slot more, as the newest. */
  #newSlot(): number {
    const slot = this.#keys.length;
    if (slot === this.#requests.length) this.#grow(Math.min(this.#maxKeys, slot * 2));
    if (this.#oldest === NONE) {
      this.#oldest = this.#newer[slot] = this.#older[slot] = slot;
      return slot;
    }
    this.#link(slot);
    return slot;
  }

  /** The slot of the least recently used key, which is forgotten, as the newest. */
  #oldestSlot(): number {
    const slot = this.#oldest;
    this.#slots.delete(this.#keys[slot] ?? "");
    this.#oldest = this.#newer[slot] ?? NONE;
    return slot;
  }

  /** Makes `slot` the newest. */
  #use(slot: number): void {
    // The newest of a ring is the one before the oldest.
    if (slot === this.#oldest) this.#oldest = this.#newer[slot] ?? NONE;
    else if (slot !== this.#older[this.#oldest]) {
      const [newer, older] = [this.#newer[slot] ?? NONE, this.#older[slot] ?? NONE];
      this.#newer[older] = newer;
      this.#older[newer] = older;
      this.#link(slot);
    }
  }

  /** Puts `slot` into the ring as the newest. */
  #link(slot: number): void {
    const oldest = this.#oldest;
    const newest = this.#older[oldest] ?? NONE;
    this.#newer[newest] = slot;
    this.#older[slot] = newest;
    this.#newer[slot] = oldest;
    this.#older[oldest] = slot;
  }

  #grow(length: number): void {
    this.#requests = grown(this.#requests, new Float64Array(length));
    this.#bytes = grown(this.#bytes, new Float64Array(length));
    this.#filledAtMs = grown(this.#filledAtMs, new Float64Array(length));
    this.#newer = grown(this.#newer, new Int32Array(length));
    this.#older = grown(this.#older, new Int32Array(length));
  }
}

function grown<A extends Float64Array | Int32Array>(from: A, to: A): A {
  to.set(from);
  return to;
}

/** The fewest whole seconds after which both buckets have enough: a second fills that of requests. */
function waitSeconds(limit: Rate, requests: number, bytes: number): number {
  const forRequests = requests < PARTS ? 1 : 0;
  // More than nothing has to be there.
  const forBytes = limit.bytes === null || bytes > 0 ? 0 : Math.floor(-bytes / (limit.bytes * PARTS)) + 1;
  return Math.max(forRequests, forBytes);
}
