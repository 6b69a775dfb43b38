import type { Timer } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import {
  DamagedStreamError,
  NoMajorityError,
  StorageBusyError,
  type ListedStream,
  type MaybePromise,
} from "../storage/storage.js";
import type { Stream, StreamContext } from "./loaded/stream.js";
import { keepsAll } from "./loaded/retention.js";
import { DueNames } from "./rules/due-names.js";
import { deadlineOf, TOUCH_INTERVAL_MS } from "./rules/expiry.js";
import type { Refused } from "./rules/outcome.js";

/** A stream, or why there is none. */
type Found = Pick<Stream, "trimExcess"> | Refused;

type SweepContext = Pick<StreamContext, "storage" | "clock" | "ttlMode" | "retention">;

/** The least pause between the end of one sweep and the next, and between two looks at what has come due meanwhile. */
const MIN_PAUSE_MS = 60_000;
/**
 * From one sweep to the next: as long again as to the last, up to this. Soon after a start there is most to find, as
 * what could not be read then.
 */
const MAX_INTERVAL_MS = 3_600_000;
/** What retention keeps too much of is found when it is so much of the age limit too old. */
const SWEEPS_PER_AGE = 8;
/** Faults at single streams that a search logs a line for each of; of more there is one that says how many. */
const MAX_LOGGED_FAULTS = 10;
/** Names of streams that are not in memory and come due before the next sweep: 8 MiB. More have it begin earlier. */
const MAX_DUE_NAMES = 50_000;

/** One search, of all streams or of those that have come due. */
interface Round {
  /** Streams at which there was one. */
  faults: number;
  /** Why one could not be asked now: the next search asks again. */
  unasked: NoMajorityError | null;
}

/** What the sweeps came to. */
export interface SweepFigures {
  /** How many have gone through all streams. */
  readonly sweeps: number;
  /** How long the last took, in milliseconds. */
  readonly lastMs: number;
  /** How many streams there are: found by the last, made and deleted since. `null` before the first is over. */
  readonly streams: number | null;
}

/**
 * Searches the streams on disk for expired and excess data, because nobody may ever ask for those streams again. What
 * is to come due before the next search it remembers; what is in memory it need not.
 */
export class Sweep {
  readonly #context: SweepContext;
  readonly #log: Log;
  readonly #find: (name: string) => MaybePromise<Found>;
  readonly #due: DueNames;
  #passTimer: Timer | null = null;
  #dueTimer: Timer | null = null;
  #stopped = false;
  /** Streams that the last sweep found to be over and did not count, until they are deleted. */
  readonly #over = new Set<string>();
  #intervalMs = MIN_PAUSE_MS;
  #sweeps = 0;
  #lastMs = 0;
  #found: number | null = null;

  /** `find` expires a stream whose time is over. */
  constructor(
    context: SweepContext,
    log: Log,
    find: (name: string) => MaybePromise<Found>,
    maxDueNames = MAX_DUE_NAMES,
  ) {
    this.#context = context;
    this.#log = log;
    this.#find = find;
    this.#due = new DueNames(maxDueNames);
  }

  /** What the sweeps since the start came to. */
  get figures(): SweepFigures {
    return { sweeps: this.#sweeps, lastMs: this.#lastMs, streams: this.#found };
  }

  start(): void {
    const { storage, clock } = this.#context;
    this.#passTimer = clock.after(0, () => void this.#run());
    if (storage.streamList.isShared) return;
    const { events } = storage.streamList;
    events.on("created", this.#counted).on("deleted", this.#uncounted);
    this.#waitForDue();
  }

  stop(): void {
    this.#stopped = true;
    this.#passTimer?.cancel();
    this.#dueTimer?.cancel();
    this.#context.storage.streamList.events.off("created", this.#counted).off("deleted", this.#uncounted);
  }

  /** A stream has left memory, and its time is over at `deadlineMs`. */
  left(name: string, deadlineMs: number): void {
    if (deadlineMs !== Infinity && !this.#stopped) this.#due.add(name, deadlineMs + TOUCH_INTERVAL_MS);
  }

  readonly #counted = (): void => void (this.#found === null || (this.#found += 1));
  readonly #uncounted = (name: string): void => {
    if (!this.#over.delete(name) && this.#found !== null) this.#found = Math.max(0, this.#found - 1);
  };

  async #run(): Promise<void> {
    const { storage, clock } = this.#context;
    const startedMs = clock.nowMs();
    // Before anything is listed: what is written after it was read is remembered.
    if (!storage.streamList.isShared) this.#due.extend(startedMs + this.#untilNextMs());
    let found = 0;
    this.#over.clear();
    const round: Round = { faults: 0, unasked: null };
    try {
      for await (const listed of storage.list()) {
        if (this.#stopped) return;
        if (await this.#consider(listed, round)) found += 1;
      }
      if (round.unasked !== null) throw round.unasked;
      this.#tellMore(round);
      this.#conclude(found, clock.nowMs() - startedMs);
    } catch (fault) {
      // What can't be asked now is asked again by the next.
      this.#cutShort(fault);
      this.#due.extend(startedMs);
    }
    if (this.#stopped) return;
    const pauseMs = Math.max(MIN_PAUSE_MS, this.#due.untilMs - clock.nowMs());
    this.#passTimer = clock.after(pauseMs, () => void this.#run());
  }

  /** How long after the begin of this sweep the next is to begin. */
  #untilNextMs(): number {
    return Math.min(this.#intervalMs, this.#context.retention.maxAgeMs / SWEEPS_PER_AGE);
  }

  /** Looks at a stream where that is due; false where it is over. */
  async #consider(listed: ListedStream, round: Round): Promise<boolean> {
    const { clock, ttlMode, retention } = this.#context;
    const { name, config, touchedAtMs } = listed;
    const nowMs = clock.nowMs();
    const dueMs = deadlineOf(config, touchedAtMs + TOUCH_INTERVAL_MS, ttlMode);
    if (dueMs > nowMs && dueMs !== Infinity) this.#due.add(name, dueMs);
    let isThere = true;
    await this.#passingOver(name, round, async () => {
      const isToDo = dueMs <= nowMs || (!keepsAll(retention) && (await listed.isExcess(retention, nowMs)));
      if (!isToDo || this.#stopped) return;
      // Before: it may be deleted while it is looked at.
      this.#over.add(name);
      const looked = await this.#look(name);
      isThere = looked !== "gone";
      if (looked === "no room") this.#due.add(name, clock.nowMs());
    });
    if (isThere) this.#over.delete(name);
    return isThere;
  }

  /** A fault at one stream is no reason to leave out those behind it. */
  async #passingOver(name: string, round: Round, look: () => Promise<void>): Promise<void> {
    try {
      await look();
    } catch (fault) {
      // Of a cluster only a part; else the others can't be asked either.
      if (fault instanceof NoMajorityError) return void (round.unasked ??= fault);
      if (fault instanceof StorageBusyError) throw fault;
      round.faults += 1;
      if (round.faults > MAX_LOGGED_FAULTS) return;
      this.#log.error("a stream was passed over by the search for what has expired", {
        stream: name,
        fault: String(fault),
      });
    }
  }

  #tellMore({ faults }: Round): void {
    if (faults > MAX_LOGGED_FAULTS)
      this.#log.error("more streams were passed over by the search for what has expired", { streams: faults });
  }

  #conclude(found: number, tookMs: number): void {
    this.#sweeps += 1;
    this.#lastMs = tookMs;
    this.#found = found;
    this.#intervalMs = Math.min(2 * this.#intervalMs, MAX_INTERVAL_MS);
  }

  #cutShort(fault: unknown): void {
    const level = fault instanceof StorageBusyError ? "warn" : "error";
    this.#log[level]("the search for what has expired was cut short", { fault: String(fault) });
  }

  /** Expires and trims a stream where that is due and there is room for it now. */
  async #look(name: string): Promise<"there" | "gone" | "no room"> {
    try {
      const found = await this.#find(name);
      if ("code" in found) return found.code === "overloaded" ? "no room" : "gone";
      found.trimExcess();
    } catch (error) {
      // The engine has logged the damage; the sweep goes on.
      if (!(error instanceof DamagedStreamError)) throw error;
    }
    return "there";
  }

  #waitForDue(): void {
    if (!this.#stopped) this.#dueTimer = this.#context.clock.after(MIN_PAUSE_MS, () => void this.#lookAtDue());
  }

  /** Looks at what has come due since the last sweep. */
  async #lookAtDue(): Promise<void> {
    const { clock } = this.#context;
    const waiting = new Set(this.#due.take(clock.nowMs()));
    const round: Round = { faults: 0, unasked: null };
    try {
      for (const name of waiting) {
        if (this.#stopped) return;
        await this.#passingOver(name, round, async () => {
          if ((await this.#look(name)) !== "no room") waiting.delete(name);
        });
      }
    } catch (fault) {
      this.#cutShort(fault);
    }
    this.#tellMore(round);
    for (const name of waiting) this.#due.add(name, clock.nowMs());
    this.#waitForDue();
  }
}
