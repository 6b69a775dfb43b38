import type { Timer } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import { decodeChange } from "./log/change.js";
import { LogUnavailableError, type LogMessage } from "./log/replicated-log.js";
import type { ClusterStream } from "./memory/cluster-stream.js";
import type { ClusterParts, StateReader } from "./reading/state-reader.js";

/** How often each followed stream is looked at, as its news may have been lost. */
const REFRESH_MS = 30_000;
/** When no stream of a shard has failed to be read for as long, what fails next is another outage. */
const OUTAGE_MS = 2 * REFRESH_MS;

/** How long a stream's news are taken in after another server was first, or was last heard to write. */
const CONTENDED_MS = 5000;
/** After so long whoever still writes comes second once more; who no longer does has no use for the news. */
const MAX_CONTENDED_MS = 60_000;
/** How many of them are looked at at a time. */
const MAX_REFRESHES = 100;

/** A stream that other servers write, since when, and when that was last heard. */
interface Contended {
  timer: Timer;
  readonly sinceMs: number;
  heardAtMs: number;
}

/** Keeps the streams that somebody follows up to date: by hints of the log, which may be lost, and by looking again. */
export class Watches {
  readonly #parts: ClusterParts;
  readonly #states: StateReader;
  readonly #isIdle: (stream: ClusterStream) => boolean;
  readonly #notices: Log;
  readonly #ends = new Map<ClusterStream, () => void>();
  /** Streams that other servers write at the same time. */
  readonly #contended = new Map<ClusterStream, Contended>();
  /** Streams that are to be looked at. */
  readonly #due = new Set<ClusterStream>();
  /** When a stream of a shard could last not be read. */
  readonly #unreadAtMs = new Map<number, number>();
  #refreshing = 0;
  #timer: Timer | null = null;

  /**
   * `isIdle` says whether nothing of ours is on its way to a stream's subject: what is heard then is of others.
   * `notices` is the server's log.
   */
  constructor(parts: ClusterParts, states: StateReader, isIdle: (stream: ClusterStream) => boolean, notices: Log) {
    this.#parts = parts;
    this.#states = states;
    this.#isIdle = isIdle;
    this.#notices = notices;
  }

  /** From now on the stream's news are taken in while somebody follows it. */
  add(stream: ClusterStream): void {
    stream.on("watched", (isWatched) => {
      if (isWatched) this.#begin(stream);
      else if (!this.#contended.has(stream)) this.#end(stream);
    });
  }

  /**
   * Takes in a stream's news for a while, as another server writes it at the same time: whoever hears of a message when
   * its sender does has the same chance to be next, and one that has to ask first has hardly any.
   */
  followAWhile(stream: ClusterStream): void {
    const { clock } = this.#parts;
    this.#contended.get(stream)?.timer.cancel();
    const timer = clock.after(CONTENDED_MS, () => this.#lookAgain(stream));
    const nowMs = clock.nowMs();
    this.#contended.set(stream, { timer, sinceMs: nowMs, heardAtMs: nowMs });
    this.#begin(stream);
  }

  /** Goes on while others write: whoever stopped would come second again, and ask again. */
  #lookAgain(stream: ClusterStream): void {
    const { clock } = this.#parts;
    const contended = this.#contended.get(stream);
    if (contended === undefined) return;
    const { sinceMs, heardAtMs } = contended;
    const leftMs = Math.min(heardAtMs + CONTENDED_MS, sinceMs + MAX_CONTENDED_MS) - clock.nowMs();
    if (leftMs <= 0) return this.forget(stream);
    contended.timer = clock.after(leftMs, () => this.#lookAgain(stream));
  }

  /** Takes in no more news of a stream that nobody follows. */
  forget(stream: ClusterStream): void {
    this.#contended.get(stream)?.timer.cancel();
    this.#contended.delete(stream);
    if (stream.observer === null) this.#end(stream);
  }

  #begin(stream: ClusterStream): void {
    if (this.#ends.has(stream)) return;
    const { log, subjects } = this.#parts;
    this.#ends.set(
      stream,
      log.watch(
        subjects.ofStream(stream.name),
        (sequence) => sequence > stream.sequence,
        (message) => this.#hinted(stream, message),
      ),
    );
    this.#timer ??= this.#parts.clock.after(REFRESH_MS, () => this.#refreshInTime());
    // What came before the hints began.
    void this.#refresh(stream);
  }

  #end(stream: ClusterStream): void {
    this.#ends.get(stream)?.();
    this.#ends.delete(stream);
  }

  #hinted(stream: ClusterStream, message: LogMessage): void {
    if (message.sequence <= stream.sequence || !stream.created) return;
    const contended = this.#contended.get(stream);
    if (contended !== undefined && this.#isIdle(stream)) contended.heardAtMs = this.#parts.clock.nowMs();
    if (message.previous !== stream.sequence) return void this.#refresh(stream);
    // What nobody follows is taken in so that the next append is first: kept, it would cost as much again to collect.
    const isCached = stream.observer !== null;
    try {
      const taken = this.#states.take(stream, decodeChange(message), isCached);
      if (taken !== undefined) taken.catch((fault: unknown) => this.#unread(stream, fault));
    } catch (fault) {
      this.#unread(stream, fault);
    }
  }

  /** Never rejects. */
  async #refresh(stream: ClusterStream): Promise<void> {
    if (stream.created) await this.#states.refresh(stream).catch((fault: unknown) => this.#unread(stream, fault));
  }

  /** Once for an outage of a shard: thousands of streams may be followed there. */
  #unread({ name }: ClusterStream, fault: unknown): void {
    if (!(fault instanceof LogUnavailableError))
      return this.#notices.error("a stream's news can't be read", { stream: name, fault: String(fault) });
    const { clock, subjects } = this.#parts;
    const shard = subjects.shardOf(name);
    const nowMs = clock.nowMs();
    const isNew = nowMs - (this.#unreadAtMs.get(shard) ?? -Infinity) >= OUTAGE_MS;
    this.#unreadAtMs.set(shard, nowMs);
    if (!isNew) return;
    const streams = [...this.#ends.keys()].filter((stream) => subjects.shardOf(stream.name) === shard).length;
    this.#notices.warn("the news of followed streams can't be read", { streams, fault: String(fault) });
  }

  #refreshInTime(): void {
    this.#timer = null;
    if (this.#ends.size === 0) return;
    this.refreshAll();
    this.#timer = this.#parts.clock.after(REFRESH_MS, () => this.#refreshInTime());
  }

  /** Looks at all that are followed, some at a time: hints may have been missed. */
  refreshAll(): void {
    for (const stream of this.#ends.keys()) this.#due.add(stream);
    while (this.#refreshing < MAX_REFRESHES && this.#due.size > 0) void this.#refreshDue();
  }

  async #refreshDue(): Promise<void> {
    this.#refreshing += 1;
    for (const stream of this.#due) {
      this.#due.delete(stream);
      if (this.#ends.has(stream)) await this.#refresh(stream);
    }
    this.#refreshing -= 1;
  }

  /** Ends all watching. */
  stop(): void {
    this.#timer?.cancel();
    for (const { timer } of this.#contended.values()) timer.cancel();
    this.#contended.clear();
    for (const stream of [...this.#ends.keys()]) this.#end(stream);
  }
}
