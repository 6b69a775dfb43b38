import type { Clock, Timer } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import type { Storage } from "../../storage/storage.js";
import { LoadedProducers } from "../loaded/loaded-producers.js";
import type { Stream } from "../loaded/stream.js";
import { ClockHand } from "./clock-hand.js";

/** Between two rounds over the loaded streams, which evict idle ones. */
const IDLE_ROUND_MS = 30_000;
/** Idle streams evicted at the same time, and streams looked at before requests have their turn. */
const EVICTED_AT_ONCE = 8;
const IDLE_BURST = 64;

/** How much may be in memory. */
export interface LoadedStreamsOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly log: Log;
  /** Streams kept in memory; beyond it idle ones are evicted, and without an idle one new names are refused. */
  readonly maxLoadedStreams: number;
  /** Producers kept in memory; beyond it idle streams are evicted, and at twice as many new producers are refused. */
  readonly maxLoadedProducers: number;
}

/**
 * The streams in memory, by name. Evicts idle ones: those that nobody used for a while, and where there are too many,
 * any.
 */
export class LoadedStreams {
  /** Those that all these streams remember. */
  readonly producers = new LoadedProducers<Stream>();
  readonly #options: LoadedStreamsOptions;
  readonly #left: (stream: Stream) => void;
  readonly #streams = new Map<string, Stream>();
  readonly #allHand: ClockHand;
  readonly #producersHand: ClockHand;
  /** Those that are being evicted, and how many producers they have. */
  readonly #leaving = new Set<Stream>();
  #leavingProducers = 0;
  #timer: Timer | null = null;
  #stopped = false;

  /** `left` is called with each stream that leaves memory. */
  constructor(options: LoadedStreamsOptions, left: (stream: Stream) => void) {
    this.#options = options;
    this.#left = left;
    const mayLeave = (stream: Stream): boolean => !this.#leaving.has(stream) && stream.readyToLeave();
    this.#allHand = new ClockHand(() => this.#streams.values(), mayLeave);
    this.#producersHand = new ClockHand(() => this.producers.streams.values(), mayLeave);
  }

  /** How many there are. */
  get size(): number {
    return this.#streams.size;
  }

  /** The stream of this name; one that was kept for its forks leaves when the last of them is gone. */
  get(name: string): Stream | null {
    const stream = this.#streams.get(name) ?? null;
    if (stream?.phase !== "kept" || stream.stored.standing === "kept") return stream;
    this.drop(stream);
    return null;
  }

  /** All of them; some may leave meanwhile. */
  values(): IterableIterator<Stream> {
    return this.#streams.values();
  }

  /** Takes a stream in: no other has its name. */
  add(stream: Stream): void {
    this.#streams.set(stream.name, stream);
    this.producers.note(stream);
  }

  /** A stream leaves memory. */
  drop(stream: Stream): void {
    this.#streams.delete(stream.name);
    this.producers.forget(stream);
    this.#left(stream);
  }

  /** Begins to evict, now and then, what nobody uses. */
  start(): void {
    this.#timer = this.#options.clock.after(IDLE_ROUND_MS, () => void this.#round());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Whether one more stream may be in memory; begins to evict an idle one when there are too many. */
  hasRoomForStream(): boolean {
    const { maxLoadedStreams } = this.#options;
    const excess = this.#streams.size + 1 - maxLoadedStreams - this.#leaving.size;
    return excess <= 0 || this.#evictOne(this.#allHand) || excess <= maxLoadedStreams;
  }

  /**
   * The same for `count` more producers. However many one stream has, there is room for them where nobody else has any.
   */
  hasRoomForProducers(count: number): boolean {
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
    const idle = hand.findIdle();
    if (idle !== null) void this.#evict(idle);
    return idle !== null;
  }

  async #evict(stream: Stream): Promise<void> {
    const { storage, log } = this.#options;
    if (this.#leaving.has(stream) || this.get(stream.name) !== stream) return;
    const { countedProducers } = stream;
    this.#leaving.add(stream);
    this.#leavingProducers += countedProducers;
    try {
      await storage.persist(stream.stored);
    } catch (fault) {
      log.error("a stream could not be written to its files", { stream: stream.name, fault: String(fault) });
      return;
    } finally {
      this.#leaving.delete(stream);
      this.#leavingProducers -= countedProducers;
    }
    if (!stream.idle || stream.recentlyUsed || this.get(stream.name) !== stream) return;
    if (storage.release(stream.stored)) this.drop(stream);
  }

  /** Passes over every loaded stream once and evicts those that nobody used since the last round. */
  async #round(): Promise<void> {
    const streams = this.#streams.values();
    // Those that come meanwhile are looked at in the next round.
    let left = this.#streams.size;
    const worker = async (): Promise<void> => {
      for (const stream of streams) {
        if (this.#stopped || (left -= 1) < 0) return;
        if (!stream.recentlyUsed && stream.readyToLeave()) await this.#evict(stream);
        else stream.recentlyUsed = false;
        // One with nothing to write is evicted without any wait; requests are not to wait for thousands of them.
        if (left % IDLE_BURST === 0) await new Promise<void>((resolve) => setImmediate(resolve));
      }
    };
    await Promise.all(Array.from({ length: EVICTED_AT_ONCE }, worker));
    this.#allHand.rest();
    this.#producersHand.rest();
    if (!this.#stopped) this.start();
  }
}
