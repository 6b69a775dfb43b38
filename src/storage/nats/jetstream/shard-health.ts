import { stopwatchMs, type Clock, type Timer } from "../../../ops/clock.js";
import type { LogHealth } from "../log/replicated-log.js";

/**
 * How long a server certainly goes on leading once a majority was behind it: its followers wait at least four seconds
 * for it before they elect another.
 */
const LEASE_MS = 3000;
/** How often a stream is asked about of which nothing was heard. */
const PROBE_MS = 1000;
/** How often a stream is asked about however much is heard of it: an answer also says whether it is still the same. */
const LOOK_MS = 30_000;
/** How long a shard may be without a majority before the server says that it can't write. */
const PATIENCE_MS = 4000;
/** When no shard has a majority for as long, it may be for the server that is asked; an election takes less, mostly. */
const ALL_SILENT_MS = 6000;
/** How often another server is tried while each refuses something: a reader's news are read again each time. */
const REFUSED_AGAIN_MS = 30_000;
/** How often a leader is looked for that requests wait for. */
const LOOK_AGAIN_MS = 100;
/** A question that is on its way may have been asked too early to answer the next. */
const MAX_QUESTIONS = 2;

/** What leaderships are looked at by. */
export interface ShardHealthOptions {
  /** The JetStream streams that appends go to: without a leader of one, the server can't write. */
  readonly shards: readonly string[];
  readonly clock: Clock;
  /**
   * How long ago a majority was behind the leader of a stream, in milliseconds; `missing` where the servers have no
   * such stream, `null` where none answers.
   */
  readonly ask: (stream: string) => Promise<number | "missing" | null>;
  /** Says why nobody can be asked at all. */
  readonly connectionFault: () => string | null;
  /** Says why a stream can't be asked about, where the user may not. */
  readonly refusalOf: (stream: string) => string | null;
  /** Whether a server refuses the user something without which a stream can't be used: only an answer ends that. */
  readonly isRefused: (stream: string) => boolean;
  /**
   * Called when no shard that can be asked about has had a majority for a while, and again after as long: another
   * server may see more.
   * `isFirst` says whether a shard had one since the last call.
   */
  readonly onAllSilent: (isFirst: boolean) => void;
  /**
   * Called when a server has refused something for a while, and rarely from then on: another may take it. Says whether
   * another is tried. `isFirst` says whether none was tried since nothing was refused.
   */
  readonly onRefused: (isFirst: boolean) => boolean;
  /** Called when a shard has had no leader for so long that the server can't write, and when it has one again. */
  readonly onLed: (shard: string, isLed: boolean) => void;
  /** Called when a shard that can't be written to is found to be gone; `onLed` tells when it is there again. */
  readonly onMissing: (shard: string) => void;
  /** How long requests wait for a stream's next leader, in milliseconds: longer than an election takes. */
  readonly patienceMs: number;
  /** Milliseconds since any moment, which no change of the system's time moves. */
  readonly nowMs?: () => number;
}

/**
 * Knows of each JetStream stream when a majority of its servers was last behind its leader. A leader that is cut off
 * from the others calls itself one for a long time after they have another, and answers reads from what it has.
 */
export class ShardHealth {
  readonly #options: Required<ShardHealthOptions>;
  readonly #heldAtMs = new Map<string, number>();
  readonly #begunAtMs: number;
  #calledAtMs = -Infinity;
  /** When another server is tried; `null` while none refuses anything. */
  #triesAnotherAtMs: number | null = null;
  #hasTriedAnother = false;
  /** When shards could not be asked about at last: what is silent since then may only not have been asked yet. */
  readonly #unaskedAtMs = new Map<string, number>();
  /** Shards of which it was told that they have no leader. */
  readonly #toldSilent = new Set<string>();
  /** Those of them that were told to be gone. */
  readonly #toldMissing = new Set<string>();
  /** Streams that the servers do not have, as they said when asked at last. */
  readonly #missing = new Set<string>();
  /** When streams were asked about at last. */
  readonly #askedAtMs = new Map<string, number>();
  /** Questions on their way. */
  readonly #asked = new Map<string, Promise<void>>();
  /** Since when streams did not answer; those that have answered again are not here. */
  readonly #leaderlessSinceMs = new Map<string, number>();
  /** Who waits for the same stream's leader shares one search. */
  readonly #searches = new Map<string, Promise<boolean>>();
  #isStopped = false;
  #timer: Timer;

  constructor(options: ShardHealthOptions) {
    this.#options = { nowMs: stopwatchMs, ...options };
    this.#begunAtMs = this.nowMs;
    this.#timer = options.clock.after(PROBE_MS, () => this.#probeQuiet());
  }

  get nowMs(): number {
    return this.#options.nowMs();
  }

  /** A majority was behind the stream's leader at this moment or later: it has stored what was sent then. */
  held(stream: string, atMs: number): void {
    this.#heldAtMs.set(stream, Math.max(atMs, this.#heldAtMs.get(stream) ?? -Infinity));
    // A leader that was cut off says for long that its followers were there before that.
    if (atMs >= (this.#leaderlessSinceMs.get(stream) ?? Infinity)) this.#leaderlessSinceMs.delete(stream);
  }

  /** Whether it is known already that the stream had no other leader at this moment than the one with a majority. */
  isLedAt(stream: string, atMs: number): boolean {
    return (this.#heldAtMs.get(stream) ?? -Infinity) + LEASE_MS >= atMs;
  }

  /** Whether that is so; asks where it is not known. */
  async wasLed(stream: string, atMs: number): Promise<boolean> {
    for (let questions = 0; !this.isLedAt(stream, atMs); questions += 1) {
      if (questions === MAX_QUESTIONS) return false;
      await this.#ask(stream);
    }
    return true;
  }

  /**
   * Waits until a majority is behind a leader of a stream that did not answer; `false` where it has had none for
   * `patienceMs`, and at once from then on: requests are not to pile up.
   */
  untilLed(stream: string): Promise<boolean> {
    const search = this.#searches.get(stream) ?? this.#search(stream).finally(() => this.#searches.delete(stream));
    this.#searches.set(stream, search);
    return search;
  }

  /** Whether a stream has had no leader for so long that nobody waits for it any more. */
  isGivenUp(stream: string): boolean {
    const sinceMs = this.#leaderlessSinceMs.get(stream);
    return sinceMs !== undefined && this.nowMs - sinceMs >= this.#options.patienceMs;
  }

  async #search(stream: string): Promise<boolean> {
    const { clock, refusalOf } = this.#options;
    if (!this.#leaderlessSinceMs.has(stream)) this.#leaderlessSinceMs.set(stream, this.nowMs);
    while (!this.#isStopped && !this.isGivenUp(stream)) {
      await this.#ask(stream);
      if (!this.#leaderlessSinceMs.has(stream)) return true;
      // A server logs each question that it refuses.
      const pauseMs = refusalOf(stream) === null ? LOOK_AGAIN_MS : PROBE_MS;
      await new Promise<void>((resolve) => void clock.after(pauseMs, resolve));
    }
    return !this.#leaderlessSinceMs.has(stream);
  }

  #ask(stream: string): Promise<void> {
    const asked = this.#asked.get(stream) ?? this.#askNow(stream).finally(() => this.#asked.delete(stream));
    this.#asked.set(stream, asked);
    return asked;
  }

  async #askNow(stream: string): Promise<void> {
    const sentAtMs = this.nowMs;
    this.#askedAtMs.set(stream, sentAtMs);
    const standing = await this.#options.ask(stream);
    if (standing === "missing") this.#missing.add(stream);
    else this.#missing.delete(stream);
    if (typeof standing === "number") this.held(stream, sentAtMs - standing);
  }

  #probeQuiet(): void {
    const { shards, clock, isRefused } = this.#options;
    const unsure = shards.filter(
      (shard) => isRefused(shard) || this.#silenceMs(shard) >= PROBE_MS || this.#isDue(shard),
    );
    for (const stream of new Set([...unsure, ...this.#leaderlessSinceMs.keys()])) void this.#ask(stream);
    for (const shard of shards)
      if (this.#whyUnasked(shard) !== null || this.#missing.has(shard)) this.#unaskedAtMs.set(shard, this.nowMs);
    this.#callWhenAllSilent();
    this.#callWhenRefused();
    this.#tellOfLeaders();
    this.#timer = clock.after(PROBE_MS, () => this.#probeQuiet());
  }

  /** Whether a stream is to be asked about although a majority is known to be behind it. */
  #isDue(stream: string): boolean {
    return this.nowMs - (this.#askedAtMs.get(stream) ?? this.#begunAtMs) >= LOOK_MS;
  }

  #whyUnasked(shard: string): string | null {
    return this.#options.connectionFault() ?? this.#options.refusalOf(shard);
  }

  #callWhenAllSilent(): void {
    const { shards, onAllSilent } = this.#options;
    // Who says that a stream is gone sees a majority: no other server knows better.
    const asked = shards.filter((shard) => this.#whyUnasked(shard) === null && !this.#missing.has(shard));
    if (asked.length === 0) return;
    const calledMs = this.nowMs - this.#calledAtMs;
    const silenceMs = Math.min(calledMs, ...asked.map((shard) => this.#silenceSinceAskedMs(shard)));
    if (silenceMs <= ALL_SILENT_MS) return;
    const heardAtMs = Math.max(...shards.map((shard) => this.#heldAtMs.get(shard) ?? this.#begunAtMs));
    const isFirst = heardAtMs >= this.#calledAtMs;
    this.#calledAtMs = this.nowMs;
    onAllSilent(isFirst);
  }

  #callWhenRefused(): void {
    const { shards, isRefused, onRefused } = this.#options;
    if (!shards.some(isRefused)) {
      // Of what the next server refuses nothing may be known yet.
      if (!this.health.writable) return;
      this.#triesAnotherAtMs = null;
      this.#hasTriedAnother = false;
      return;
    }
    this.#triesAnotherAtMs ??= this.nowMs + ALL_SILENT_MS;
    if (this.nowMs < this.#triesAnotherAtMs || !onRefused(!this.#hasTriedAnother)) return;
    this.#triesAnotherAtMs = this.nowMs + REFUSED_AGAIN_MS;
    this.#hasTriedAnother = true;
  }

  #tellOfLeaders(): void {
    const { shards, onLed, onMissing } = this.#options;
    for (const shard of shards) {
      if (this.#whyUnasked(shard) !== null) continue;
      if (this.#isSilent(shard) && this.#missing.has(shard)) {
        if (!this.#toldMissing.has(shard)) onMissing(shard);
        this.#toldMissing.add(shard);
        this.#toldSilent.add(shard);
        continue;
      }
      const wasSilent = this.#toldSilent.has(shard);
      const isSilent = this.#isSilent(shard) && (wasSilent || this.#silenceSinceAskedMs(shard) > PATIENCE_MS);
      if (isSilent === wasSilent) continue;
      if (isSilent) this.#toldSilent.add(shard);
      else for (const told of [this.#toldSilent, this.#toldMissing]) told.delete(shard);
      onLed(shard, !isSilent);
    }
  }

  /** How long a shard has been silent of which it could be asked. */
  #silenceSinceAskedMs(shard: string): number {
    return Math.min(this.#silenceMs(shard), this.nowMs - (this.#unaskedAtMs.get(shard) ?? -Infinity));
  }

  #isSilent(shard: string): boolean {
    return this.#silenceMs(shard) > PATIENCE_MS;
  }

  #silenceMs(shard: string): number {
    return this.nowMs - (this.#heldAtMs.get(shard) ?? this.#begunAtMs);
  }

  /** Whether each shard has a leader with a majority behind it. */
  get health(): LogHealth {
    const { shards, connectionFault, refusalOf } = this.#options;
    const silent = shards.filter((shard) => this.#isSilent(shard));
    const gone = silent.filter((shard) => this.#missing.has(shard)).map(missingShard);
    const [refusal = null] = silent.flatMap((shard) => refusalOf(shard) ?? []);
    const leaderless = silent.length === 0 ? null : `no leader answers for ${silent.join(", ")}`;
    const reason = connectionFault() ?? refusal ?? gone[0] ?? leaderless;
    return { writable: reason === null, reason };
  }

  /** Asks no more. */
  stop(): void {
    this.#isStopped = true;
    this.#timer.cancel();
  }
}

function missingShard(shard: string): string {
  return `the NATS servers have no ${shard}: restore it from a backup before any front end starts`;
}
