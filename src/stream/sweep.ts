import type { Timer } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import { StorageBusyError, type ListedStream, type MaybePromise } from "../storage/storage.js";
import type { StreamContext } from "./loaded/stream.js";
import { keepsAll } from "./loaded/retention.js";
import { deadlineOf, TOUCH_INTERVAL_MS } from "./rules/expiry.js";

type SweepContext = Pick<StreamContext, "storage" | "clock" | "ttlMode" | "retention">;

/** The pause between the end of one sweep and the next. */
const PAUSE_MS = 60_000;

/** What the sweeps came to. */
export interface SweepFigures {
  /** How many have gone through all streams. */
  readonly sweeps: number;
  /** How long the last took, in milliseconds. */
  readonly lastMs: number;
  /** How many streams the last one found on disk; `null` before the first is over. */
  readonly streams: number | null;
}

/** Searches the streams on disk for expired and excess data, because nobody may ever ask for those streams again. */
export class Sweep {
  readonly #context: SweepContext;
  readonly #log: Log;
  readonly #look: (name: string) => MaybePromise<void>;
  #timer: Timer | null = null;
  #stopped = false;
  #sweeps = 0;
  #lastMs = 0;
  #found: number | null = null;

  /** `look` finds a stream that has expired or holds more than retention keeps: finding it is enough. */
  constructor(context: SweepContext, log: Log, look: (name: string) => MaybePromise<void>) {
    this.#context = context;
    this.#log = log;
    this.#look = look;
  }

  /** What the sweeps since the start came to. */
  get figures(): SweepFigures {
    return { sweeps: this.#sweeps, lastMs: this.#lastMs, streams: this.#found };
  }

  start(): void {
    this.#timer = this.#context.clock.after(0, () => void this.#run());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #run(): Promise<void> {
    const { storage, clock } = this.#context;
    const startedMs = clock.nowMs();
    let found = 0;
    try {
      for await (const listed of storage.list()) {
        if (this.#stopped) return;
        found += 1;
        if ((await this.#isDue(listed)) && !this.#stopped) await this.#look(listed.name);
      }
      this.#over(found, clock.nowMs() - startedMs);
    } catch (fault) {
      // What can't be asked now is asked again by the next.
      const level = fault instanceof StorageBusyError ? "warn" : "error";
      this.#log[level]("the search for what has expired was cut short", { fault: String(fault) });
    }
    if (!this.#stopped) this.#timer = clock.after(PAUSE_MS, () => void this.#run());
  }

  #over(found: number, tookMs: number): void {
    this.#sweeps += 1;
    this.#lastMs = tookMs;
    this.#found = found;
  }

  #isDue(listed: ListedStream): MaybePromise<boolean> {
    const { config, touchedAtMs } = listed;
    const { clock, ttlMode, retention } = this.#context;
    const nowMs = clock.nowMs();
    if (deadlineOf(config, touchedAtMs + TOUCH_INTERVAL_MS, ttlMode) <= nowMs) return true;
    return !keepsAll(retention) && listed.isExcess(retention, nowMs);
  }
}
