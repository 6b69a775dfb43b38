import type { Clock, Timer } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import type { Storage } from "../storage/storage.js";
import { ClockHand } from "./clock-hand.js";
import type { LoadedProducers } from "./loaded/loaded-producers.js";
import type { Stream } from "./loaded/stream.js";

/** Between two rounds over the loaded streams that lets idle ones go. */
const IDLE_ROUND_MS = 30_000;
/** Idle streams let go at the same time, and streams looked at before requests have their turn. */
const FORGOTTEN_AT_ONCE = 8;
const IDLE_BURST = 64;

/** What eviction needs. Idle streams beyond a bound leave memory; at twice the bound nothing more comes in. */
export interface EvictionOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly log: Log;
  /** The streams in memory, by name. */
  readonly streams: ReadonlyMap<string, Stream>;
  /** The one of this name that is still needed. */
  readonly known: (name: string) => Stream | null;
  readonly producers: LoadedProducers<Stream>;
  readonly maxLoadedStreams: number;
  readonly maxLoadedProducers: number;
  /** Takes out of memory what storage has let go of. */
  readonly drop: (stream: Stream) => void;
}

/** Lets idle streams go from memory: those that nobody used for a while, and where there are too many, any. */
export class Eviction {
  readonly #options: EvictionOptions;
  readonly #allHand: ClockHand;
  readonly #producersHand: ClockHand;
  /** Those on their way out, and how many producers they have. */
  readonly #leaving = new Set<Stream>();
  #leavingProducers = 0;
  #timer: Timer | null = null;
  #stopped = false;

  constructor(options: EvictionOptions) {
    this.#options = options;
    const mayLeave = (stream: Stream): boolean => !this.#leaving.has(stream) && stream.readyToLeave();
    this.#allHand = new ClockHand(() => options.streams.values(), mayLeave);
    this.#producersHand = new ClockHand(() => options.producers.streams.values(), mayLeave);
  }

  /** Begins to let go, now and then, of what nobody uses. */
  start(): void {
    this.#timer = this.#options.clock.after(IDLE_ROUND_MS, () => void this.#round());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Whether one more stream may be in memory; begins to let an idle one go when there are too many. */
  hasRoomForStream(): boolean {
    const { streams, maxLoadedStreams } = this.#options;
    const excess = streams.size + 1 - maxLoadedStreams - this.#leaving.size;
    return excess <= 0 || this.#letOneGo(this.#allHand) || excess <= maxLoadedStreams;
  }

  /** The same for `count` more producers. However many one stream has, there is room for them where nobody else has any. */
  hasRoomForProducers(count: number): boolean {
    const { producers, maxLoadedProducers } = this.#options;
    const total = producers.count + count;
    if (total <= maxLoadedProducers || producers.count === 0) return true;
    for (let streams = FORGOTTEN_AT_ONCE; streams > 0 && total - this.#leavingProducers > maxLoadedProducers; streams -= 1) {
      if (!this.#letOneGo(this.#producersHand)) break;
    }
    return total <= 2 * maxLoadedProducers;
  }

  #letOneGo(hand: ClockHand): boolean {
    const idle = hand.findIdle();
    if (idle !== null) void this.#letGo(idle);
    return idle !== null;
  }

  async #letGo(stream: Stream): Promise<void> {
    const { storage, log, known, drop } = this.#options;
    if (this.#leaving.has(stream) || known(stream.name) !== stream) return;
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
    if (!stream.idle || stream.recentlyUsed || known(stream.name) !== stream) return;
    if (storage.release(stream.stored)) drop(stream);
  }

  /** Passes over every loaded stream once and lets those go that nobody used since the last round. */
  async #round(): Promise<void> {
    const streams = this.#options.streams.values();
    // Those that come meanwhile are looked at in the next round.
    let left = this.#options.streams.size;
    const worker = async (): Promise<void> => {
      for (const stream of streams) {
        if (this.#stopped || (left -= 1) < 0) return;
        if (!stream.recentlyUsed && stream.readyToLeave()) await this.#letGo(stream);
        else stream.recentlyUsed = false;
        // One with nothing to write is let go without any wait; requests are not to wait for thousands of them.
        if (left % IDLE_BURST === 0) await new Promise<void>((resolve) => setImmediate(resolve));
      }
    };
    await Promise.all(Array.from({ length: FORGOTTEN_AT_ONCE }, worker));
    this.#allHand.rest();
    this.#producersHand.rest();
    if (!this.#stopped) this.start();
  }
}
