// The keys of an issuer that publishes them at a URL: a cache, with a bound on how often it asks.

import type { Clock, Timer } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import type { JwtHeader } from "./compact.js";
import { fetchKeySet } from "./fetch-key-set.js";
import type { KeySetPlace } from "./fetch-key-set.js";
import { parseKeySet, selectKey } from "./key-set.js";
import type { KeyAnswer, KeySource } from "./key-source.js";
import type { Algorithm, VerificationKey } from "./verification-key.js";

/** For how long keys are used without asking again, in milliseconds. */
export const KEYS_FRESH_MS = 10 * 60_000;

/** For how long keys are used while no others can be had, in milliseconds. */
export const KEYS_KEPT_MS = 24 * 60 * 60_000;

/** How soon an unknown `kid` or a failure makes it ask again, in milliseconds. */
export const KEYS_COOLDOWN_MS = 30_000;

/** How soon it asks again where there are no keys at all, in milliseconds. */
export const KEYS_RETRY_MS = 5000;

/**
 * Most JWTs and tickets that wait for a fetch: nobody knows yet whose they are, the bodies of their requests may be on
 * their way, and each costs a signature when the keys are there.
 */
export const MAX_WAITING_FOR_KEYS = 256;

/** What {@link RemoteKeys} work with. */
export interface RemoteKeysParts {
  readonly place: KeySetPlace;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when a key that was there is gone: what it signed no longer holds. */
  readonly onKeyGone: () => void;
  /** Replaced by tests. */
  readonly fetch?: typeof fetchKeySet;
}

/**
 * Keys at a URL. One fetch at a time, which all who need it share. They are fetched again when they are old, though
 * nobody asks: a JWT that is remembered and a live read ask for no key, and must end with theirs.
 */
export class RemoteKeys implements KeySource {
  readonly #parts: RemoteKeysParts;
  readonly #closing = new AbortController();
  #keys: readonly VerificationKey[] = [];
  #fetchedAtMs = -Infinity;
  #askedAtMs = -Infinity;
  #fetching: Promise<void> | null = null;
  #timer: Timer | null = null;
  #isOut = false;
  #waiting = 0;
  #hasAnswered = false;
  /** Whether the keys that were there have been given up, as no others could be had for so long. */
  #isSpent = false;

  constructor(parts: RemoteKeysParts) {
    this.#parts = parts;
  }

  /** Fetches the keys before anybody needs them. */
  warm(): void {
    if (this.#ageMs() >= KEYS_FRESH_MS && this.#isCool(KEYS_COOLDOWN_MS)) void this.#refresh();
  }

  keyFor(header: JwtHeader, algs: readonly Algorithm[]): KeyAnswer | Promise<KeyAnswer> {
    const found = this.#find(header, algs);
    const refreshed = this.#isWorthAsking(found) ? this.#refresh() : this.#fetching;
    if (typeof found === "object" || refreshed === null) return found;
    if (this.#waiting >= MAX_WAITING_FOR_KEYS) return "unavailable";
    return this.#whileWaiting(refreshed).then(() => this.#find(header, algs));
  }

  /** Whether the first fetch has ended, well or not. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  known(): Promise<void> | null {
    if (this.#ageMs() < KEYS_KEPT_MS) return null;
    const refreshed = this.#isCool(KEYS_RETRY_MS) ? this.#refresh() : this.#fetching;
    // Who comes when so many wait has what is known now, and that is no keys.
    return refreshed === null || this.#waiting >= MAX_WAITING_FOR_KEYS ? null : this.#whileWaiting(refreshed);
  }

  async #whileWaiting(refreshed: Promise<void>): Promise<void> {
    this.#waiting += 1;
    await refreshed;
    this.#waiting -= 1;
  }

  has(matches: (print: string) => boolean): boolean {
    return this.#ageMs() < KEYS_KEPT_MS && this.#keys.some(({ print }) => matches(print));
  }

  /** Fetches no more, and ends a fetch that is under way. */
  close(): void {
    this.#closing.abort();
    this.#timer?.cancel();
  }

  #find(header: JwtHeader, algs: readonly Algorithm[]): KeyAnswer {
    if (this.#ageMs() >= KEYS_KEPT_MS) return "unavailable";
    return selectKey(this.#keys, header, algs) ?? "unknown";
  }

  #ageMs(): number {
    return this.#parts.clock.nowMs() - this.#fetchedAtMs;
  }

  #isWorthAsking(found: KeyAnswer): boolean {
    const pauseMs = found === "unavailable" ? KEYS_RETRY_MS : KEYS_COOLDOWN_MS;
    return this.#isCool(pauseMs) && (typeof found !== "object" || this.#ageMs() >= KEYS_FRESH_MS);
  }

  #isCool(pauseMs: number): boolean {
    return this.#parts.clock.nowMs() - this.#askedAtMs >= pauseMs;
  }

  /** Never rejects. */
  #refresh(): Promise<void> {
    if (this.#fetching !== null) return this.#fetching;
    this.#timer?.cancel();
    this.#fetching = this.#fetch().finally(() => {
      this.#fetching = null;
      this.#askedAtMs = this.#parts.clock.nowMs();
      if (this.#closing.signal.aborted) return;
      const pauseMs = this.#isOut ? KEYS_COOLDOWN_MS : KEYS_FRESH_MS;
      this.#timer = this.#parts.clock.after(pauseMs, () => void this.#refresh());
      if (this.#hasAnswered) return;
      // Until now the keys that an issuer had before were taken for its own (succession.ts).
      this.#hasAnswered = true;
      this.#parts.onKeyGone();
    });
    return this.#fetching;
  }

  async #fetch(): Promise<void> {
    const { place, clock, log, fetch = fetchKeySet } = this.#parts;
    try {
      const result = parseKeySet(await fetch(place, clock, this.#closing.signal));
      if (result.kind === "fault") throw new Error(`the answer ${result.words}`);
      this.#take(result.keys);
      if (result.keys.length === 0) throw new Error("the answer has no key that can verify a JWT, so none counts");
      if (this.#isOut) log.info("the keys of an issuer can be fetched again", { url: place.url });
      this.#isOut = false;
    } catch (error) {
      this.#giveUpOld();
      if (this.#isOut || this.#closing.signal.aborted) return;
      this.#isOut = true;
      // Once an outage: what fails every 30 s would fill the log.
      const fault = error instanceof Error ? error.message : String(error);
      log.warn("the keys of an issuer can't be fetched", { url: place.url, fault });
    }
  }

  #take(keys: readonly VerificationKey[]): void {
    const before = this.#keys;
    this.#keys = keys;
    this.#fetchedAtMs = this.#parts.clock.nowMs();
    this.#isSpent = false;
    if (before.some((gone) => !this.has((print) => print === gone.print))) this.#parts.onKeyGone();
  }

  /** What the keys signed ends with them: once, not with each fetch that fails. */
  #giveUpOld(): void {
    if (this.#isSpent || this.#keys.length === 0 || this.#ageMs() < KEYS_KEPT_MS) return;
    this.#isSpent = true;
    const { log, place, onKeyGone } = this.#parts;
    log.error("the keys of an issuer are given up: none could be fetched for a day", { url: place.url });
    onKeyGone();
  }
}
