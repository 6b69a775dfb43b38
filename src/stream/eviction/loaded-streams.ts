import type { Clock, Timer } from "../../ops/clock.js";
import { reportEviction } from "../../ops/diagnostics.js";
import type { Log } from "../../ops/log.js";
import { nextTurn } from "../../ops/turns.js";
import type { MaybePromise, Storage } from "../../storage/storage.js";
import { LoadedProducers } from "../loaded/loaded-producers.js";
import type { Stream } from "../loaded/stream.js";
import { GONE, NOT_FOUND, TOO_MANY_PRODUCERS, TOO_MANY_STREAMS, type Refused } from "../rules/outcome.js";
import { ClockHand, MAX_LOOKS } from "./clock-hand.js";

/** The pause between two rounds, each of which evicts idle streams. */
const IDLE_ROUND_MS = 30_000;
/** How many idle streams are evicted at once, and how many streams one turn of the event loop looks at. */
const EVICTED_AT_ONCE = 8;
/** Streams on their way to disk to make room: more would keep the journal's own writes to these files waiting. */
const MAX_LEAVING = 32;
/** Requests that wait for one of them to have left; others are refused. */
const MAX_WAITING = 1024;
/** Where none can leave, nobody waits for so long. */
const REFUSAL_MS = 100;
const IDLE_BURST = 64;

/** The limits of what may be in memory, and what eviction works with. */
export interface LoadedStreamsOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly log: Log;
  /** Streams kept in memory. Beyond it idle streams are evicted; at twice as many, others wait until one has left. */
  readonly maxLoadedStreams: number;
  /** Producers kept in memory. Beyond it idle streams are evicted; at twice as many, new producers are refused. */
  readonly maxLoadedProducers: number;
}

/** Holds the streams in memory, by name, and evicts those that are idle for a while, or any when there are too many. */
export class LoadedStreams {
  /** The producers that these streams remember. */
  readonly producers = new LoadedProducers<Stream>();
  readonly #options: LoadedStreamsOptions;
  readonly #left: (stream: Stream) => void;
  readonly #streams = new Map<string, Stream>();
  /** Idle streams that left memory since the start. */
  evicted = 0;
  readonly #allHand: ClockHand;
  readonly #producersHand: ClockHand;
  /** The streams that are being evicted, and how many producers they have. */
  readonly #leaving = new Set<Stream>();
  #leavingProducers = 0;
  /** Requests that wait until a stream has left; told `null` when one has. */
  readonly #waiting: ((refused: Refused | null) => void)[] = [];
  #isSearching = false;
  /** How many streams are still looked at for them before they are refused. */
  #looks = 0;
  /** When a search found none that can leave, and nothing has left since. */
  #refusedAtMs = -Infinity;
  #timer: Timer | null = null;
  #stopped = false;

  /** `left` is called with each stream that is removed. */
  constructor(options: LoadedStreamsOptions, left: (stream: Stream) => void) {
    this.#options = options;
    this.#left = left;
    const mayLeave = (stream: Stream): boolean => !this.#leaving.has(stream) && stream.readyToLeave();
    this.#allHand = new ClockHand(() => this.#streams.values(), mayLeave);
    this.#producersHand = new ClockHand(() => this.producers.streams.values(), mayLeave);
  }

  /** How many streams are in memory. */
  get size(): number {
    return this.#streams.size;
  }

  /** The stream of this name. A stream that was kept for its forks is removed here when the last of them is gone. */
  get(name: string): Stream | null {
    const stream = this.#streams.get(name) ?? null;
    if (stream?.phase !== "kept" || stream.stored.standing === "kept") return stream;
    this.drop(stream);
    return null;
  }

  /** Why a deleted stream's name has no stream; `null` where it has a new one. */
  whyNotThere(stream: Stream): Refused | null {
    const now = this.get(stream.name);
    return now === null ? NOT_FOUND : now === stream ? GONE : null;
  }

  /**
   * Calls `next` with that for a `kept` stream. Where the last of its forks is gone, or goes now, it first waits until
   * storage has removed the stream, or has failed to: the deletion of the fork may have been answered before that.
   */
  whenNotHeld<T>(stream: Stream, next: (refused: Refused | null) => MaybePromise<T>): MaybePromise<T> {
    const { stored } = stream;
    const freed = stored.standing === "kept" ? this.#options.storage.whenFreed(stored) : null;
    if (freed === null) return next(this.whyNotThere(stream));
    return freed.then(() => next(this.whyNotThere(stream)));
  }

  /** All streams; some may be removed during the iteration. */
  values(): IterableIterator<Stream> {
    return this.#streams.values();
  }

  /** Adds a stream, whose name must be free. */
  add(stream: Stream): void {
    this.#streams.set(stream.name, stream);
    this.producers.note(stream);
  }

  /** Removes a stream. */
  drop(stream: Stream): void {
    // It may have left before, and another one have its name since.
    if (this.#streams.get(stream.name) === stream) this.#streams.delete(stream.name);
    this.producers.forget(stream);
    this.#left(stream);
    this.#looks = 2 * this.#streams.size;
    this.#refusedAtMs = -Infinity;
    if (!this.#isFull) this.#waiting.shift()?.(null);
  }

  /** Starts the rounds that evict idle streams. */
  start(): void {
    this.#timer = this.#options.clock.after(IDLE_ROUND_MS, () => void this.#round());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** The same as {@link makeRoomForStream} for a stream that is on disk, with so many producers. */
  makeRoomToLoad(producers: number): Refused | null {
    return this.makeRoomForStream() ?? (this.makeRoomForProducers(producers) ? null : TOO_MANY_PRODUCERS);
  }

  /** Starts to evict an idle stream when there are too many; returns why not one more may be in memory now. */
  makeRoomForStream(): Refused | null {
    if (this.#streams.size - this.#leaving.size >= this.#options.maxLoadedStreams) this.#evictOne(this.#allHand);
    // One that begins to leave may stay after all: on a full disk it can't be written to its files.
    return this.#isFull ? TOO_MANY_STREAMS : null;
  }

  /**
   * Resolves once a stream has left, for whoever {@link makeRoomForStream} had no room for, to begin again; to why
   * there is no hope of that where none can leave, or too many wait.
   */
  whenLeft(): Promise<Refused | null> {
    // The clock may be set back.
    const isRefused = Math.abs(this.#options.clock.nowMs() - this.#refusedAtMs) < REFUSAL_MS;
    if (isRefused || this.#waiting.length >= MAX_WAITING) return Promise.resolve(TOO_MANY_STREAMS);
    if (this.#waiting.length === 0) this.#looks = 2 * this.#streams.size;
    const left = new Promise<Refused | null>((resolve) => this.#waiting.push(resolve));
    void this.#serveWaiting();
    return left;
  }

  get #isFull(): boolean {
    return this.#streams.size >= 2 * this.#options.maxLoadedStreams;
  }

  /**
   * Has a stream leave for each request that waits. All are looked at twice for that, a few in each turn of the event
   * loop: at the first look most of them were used since the last one.
   */
  async #serveWaiting(): Promise<void> {
    if (this.#isSearching) return;
    this.#isSearching = true;
    while (this.#looks > 0 && this.#leaving.size < Math.min(this.#waiting.length, MAX_LEAVING)) {
      if (this.#evictOne(this.#allHand)) continue;
      this.#looks -= MAX_LOOKS;
      await nextTurn();
    }
    this.#isSearching = false;
    if (this.#leaving.size > 0 || this.#waiting.length === 0) return;
    // Others would only look through all of them again.
    this.#refusedAtMs = this.#options.clock.nowMs();
    for (const tell of this.#waiting.splice(0)) tell(this.#isFull ? TOO_MANY_STREAMS : null);
  }

  /** The same for `count` more producers; any number fits where no stream has one. */
  makeRoomForProducers(count: number): boolean {
    const { maxLoadedProducers } = this.#options;
    const total = this.producers.count + count;
    if (total <= maxLoadedProducers || this.producers.count === 0) return true;
    for (
      let streams = EVICTED_AT_ONCE;
      streams > 0 && total - this.#leavingProducers > maxLoadedProducers;
      streams -= 1
    ) {
      if (!this.#evictOne(this.#producersHand)) break;
    }
    return total <= 2 * maxLoadedProducers;
  }

  #evictOne(hand: ClockHand): boolean {
    const idle = this.#leaving.size < MAX_LEAVING ? hand.findIdle() : null;
    if (idle !== null) void this.#evictAlone(idle);
    return idle !== null;
  }

  async #evictAlone(stream: Stream): Promise<void> {
    reportEviction(await this.#evict(stream), this.#streams.size);
  }

  /** Returns how many streams were evicted: 1 or 0. */
  async #evict(stream: Stream): Promise<number> {
    if (this.#leaving.has(stream) || this.get(stream.name) !== stream) return 0;
    const how = await this.#leave(stream);
    // Where the disk takes one no more, it takes none: nobody waits until all have been tried.
    if (how === "failed") this.#waiting.shift()?.(this.#isFull ? TOO_MANY_STREAMS : null);
    if (how === "stayed") {
      this.#looks -= 1;
      await nextTurn();
    }
    void this.#serveWaiting();
    return how === "left" ? 1 : 0;
  }

  async #leave(stream: Stream): Promise<"left" | "stayed" | "failed"> {
    const { storage, log } = this.#options;
    const { countedProducers } = stream;
    this.#leaving.add(stream);
    this.#leavingProducers += countedProducers;
    try {
      await storage.persist(stream.stored);
    } catch (fault) {
      log.error("a stream could not be written to its files", { stream: stream.name, fault: String(fault) });
      return "failed";
    } finally {
      this.#leaving.delete(stream);
      this.#leavingProducers -= countedProducers;
    }
    if (!stream.idle || stream.recentlyUsed || this.get(stream.name) !== stream) return "stayed";
    if (!storage.release(stream.stored)) return "stayed";
    this.evicted += 1;
    this.drop(stream);
    return "left";
  }

  /** Looks at every loaded stream once and evicts those that were not used since the last round. */
  async #round(): Promise<void> {
    const streams = this.#streams.values();
    // Streams that are loaded meanwhile wait for the next round.
    let left = this.#streams.size;
    let evicted = 0;
    const worker = async (): Promise<void> => {
      for (const stream of streams) {
        if (this.#stopped || (left -= 1) < 0) return;
        if (!stream.recentlyUsed && stream.readyToLeave()) {
          const count = await this.#evict(stream);
          evicted += count;
        } else stream.recentlyUsed = false;
        // Streams with nothing to write are evicted without a pause; requests must not wait for thousands of them.
        if (left % IDLE_BURST === 0) await nextTurn();
      }
    };
    await Promise.all(Array.from({ length: EVICTED_AT_ONCE }, worker));
    reportEviction(evicted, this.#streams.size);
    this.#allHand.rest();
    this.#producersHand.rest();
    if (!this.#stopped) this.start();
  }
}
