import type { Clock, Timer } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import type { ListedStream, MaybePromise, Storage } from "../storage/storage.js";
import { deadlineOf, TOUCH_INTERVAL_MS, type TtlMode } from "./rules/expiry.js";
import { isExcess, type RetentionLimits } from "./loaded/retention.js";

/** The options of a sweep. */
export interface SweepOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly log: Log;
  readonly ttlMode: TtlMode;
  readonly retention: RetentionLimits;
  /** Finds a stream that has expired or holds more than retention keeps: finding it is enough. */
  readonly look: (name: string) => MaybePromise<void>;
}

/** The pause between the end of one sweep and the next. */
const PAUSE_MS = 60_000;

/** Searches the streams on disk for expired and excess data, because nobody may ever ask for those streams again. */
export class Sweep {
  readonly #options: SweepOptions;
  #timer: Timer | null = null;
  #stopped = false;

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = this.#options.clock.after(0, () => void this.#run());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #run(): Promise<void> {
    const { storage, clock, log, look } = this.#options;
    try {
      for await (const listed of storage.list()) {
        if (this.#stopped) return;
        if (this.#isDue(listed)) await look(listed.name);
      }
    } catch (fault) {
      log.error("the search for what has expired was cut short", { fault: String(fault) });
    }
    if (!this.#stopped) this.#timer = clock.after(PAUSE_MS, () => void this.#run());
  }

  #isDue({ config, touchedAtMs, oldest, tail }: ListedStream): boolean {
    const { clock, ttlMode, retention } = this.#options;
    const nowMs = clock.nowMs();
    return (
      deadlineOf(config, touchedAtMs + TOUCH_INTERVAL_MS, ttlMode) <= nowMs || isExcess(oldest, tail, retention, nowMs)
    );
  }
}
