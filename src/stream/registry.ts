import { DEFAULT_CONTENT_TYPE, formatOf } from "../protocol/content-type.js";
import type { Clock, Timer } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import { DamagedStreamError, type AppendRecord, type MaybePromise, type Settlement, type Storage, type StorageHealth, type StreamConfig } from "../storage/storage.js";
import { chain } from "./chain.js";
import type { AppendCommand, CreateCommand, ForkRequest } from "./command.js";
import { frameBody, matchesExisting } from "./decide.js";
import { ExpiryQueue, type TtlMode } from "./expiry.js";
import { forkConfig, forkOrigin, refuseSource, type ForkBase } from "./fork.js";
import { refuse, type AnswerAppend, type CreateOutcome, type DeleteOutcome, type Refused } from "./outcome.js";
import { KEEP_ALL, RetentionTimer, type RetentionLimits } from "./retention.js";
import { refuseRejected, Stream, type StreamContext } from "./stream.js";
import { Sweep } from "./sweep.js";

/** What a registry needs. */
export interface RegistryOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly log: Log;
  readonly ttlMode: TtlMode;
  /** How much of each stream is kept; all of it when absent. */
  readonly retention?: RetentionLimits;
  /** Streams kept in memory; beyond it idle ones are let go, and without an idle one new names are refused. */
  readonly maxLoadedStreams: number;
}

/** Between two rounds over the loaded streams that lets idle ones go. */
const IDLE_ROUND_MS = 30_000;
/** Idle streams let go at the same time, and streams looked at before requests have their turn. */
const FORGOTTEN_AT_ONCE = 8;
const IDLE_BURST = 64;
/** Idle streams looked at when room is needed for one more. */
const MAX_LOOKS_FOR_ROOM = 64;

/**
 * The streams by name. It loads them on first use, lets idle ones go, and is where a name changes hands: creation,
 * deletion and expiry.
 */
export class Registry {
  readonly #context: StreamContext;
  readonly #log: Log;
  readonly #maxLoadedStreams: number;
  readonly #streams = new Map<string, Stream>();
  readonly #loading = new Map<string, Promise<Stream | null>>();
  readonly #expiries: ExpiryQueue<Stream>;
  readonly #retentionTimer: RetentionTimer;
  readonly #sweep: Sweep;
  /** Where the search for an idle stream goes on. Kept for one round at most: an iterator that stands still keeps what was in the map. */
  #clockHand: IterableIterator<Stream> | null = null;
  #releasing = 0;
  #idleTimer: Timer | null = null;
  #stopped = false;

  constructor(options: RegistryOptions) {
    const { storage, clock, ttlMode, retention = KEEP_ALL } = options;
    this.#context = { storage, clock, ttlMode, retention };
    this.#retentionTimer = new RetentionTimer(clock, retention, () => this.#trimAged());
    this.#log = options.log;
    this.#maxLoadedStreams = options.maxLoadedStreams;
    this.#expiries = new ExpiryQueue(clock, (stream) => this.#expire(stream));
    this.#sweep = new Sweep({ storage, clock, log: options.log, ttlMode, retention, look: (name) => this.#look(name) });
  }

  /** Streams in memory. */
  get loadedCount(): number {
    return this.#streams.size;
  }

  health(): StorageHealth {
    return this.#context.storage.health();
  }

  /** Begins letting idle streams go and looking for expired ones on disk. */
  start(): void {
    this.#idleTimer = this.#context.clock.after(IDLE_ROUND_MS, () => this.#idleRound());
    this.#sweep.start();
    this.#retentionTimer.start();
  }

  /** Stops all background work. */
  stop(): void {
    this.#stopped = true;
    this.#idleTimer?.cancel();
    this.#sweep.stop();
    this.#expiries.stop();
    this.#retentionTimer.stop();
  }

  /** The stream as readers see it, or why there is none. A created or deleted one is waited for until that is durable. */
  find(name: string): MaybePromise<Stream | Refused> {
    const stream = this.#known(name);
    if (stream === null) return this.#findOnDisk(name);
    if (stream.phase === "live") return this.#unlessExpired(stream);
    if (stream.phase === "kept") return GONE;
    return this.#findWhenSettled(stream);
  }

  /** The stream in memory; one that was kept for its forks leaves when the last of them is gone. */
  #known(name: string): Stream | null {
    const stream = this.#streams.get(name) ?? null;
    if (stream?.phase !== "kept" || stream.stored.standing === "kept") return stream;
    this.#streams.delete(name);
    return null;
  }

  async #findOnDisk(name: string): Promise<Stream | Refused> {
    const loaded = await this.#load(name);
    if (loaded === null && !this.#streams.has(name)) return NOT_FOUND;
    return this.find(name);
  }

  async #findWhenSettled(stream: Stream): Promise<Stream | Refused> {
    const settled = await stream.whenDurable(() => null);
    if (settled !== null && settled.code === "storage-unavailable") return settled;
    // A failed creation or deletion leaves the name as it was before.
    return this.find(stream.name);
  }

  #unlessExpired(stream: Stream): Stream | Refused {
    if (stream.isExpired(this.#context.clock.nowMs())) {
      this.#expire(stream);
      return stream.stored.forkCount > 0 ? GONE : NOT_FOUND;
    }
    stream.recentlyUsed = true;
    return stream;
  }

  /** Appends to or closes the stream of this name; `answer` gets the outcome (specification 4.2, 4.3). */
  append(name: string, command: AppendCommand, answer: AnswerAppend): MaybePromise<void> {
    const stream = this.#known(name);
    if (stream === null) return this.#appendLoaded(name, command, answer);
    if (!stream.isCurrent) return chain(this.#refuseGone(stream), answer);
    const current = this.#unlessExpired(stream);
    return current instanceof Stream ? stream.append(command, answer) : answer(current);
  }

  async #appendLoaded(name: string, command: AppendCommand, answer: AnswerAppend): Promise<void> {
    const loaded = await this.#load(name);
    if (loaded === null && !this.#streams.has(name)) answer(NOT_FOUND);
    else await this.append(name, command, answer);
  }

  #refuseGone(stream: Stream): MaybePromise<Refused> {
    return stream.whenGone((): Refused => (stream.phase === "kept" ? GONE : NOT_FOUND));
  }

  /** Creates the stream of this name, or finds it there as asked for (specification 4.1). */
  create(name: string, command: CreateCommand): Promise<CreateOutcome> {
    return this.#create(name, command, null);
  }

  /** `base` is the place that was found for a fork. */
  async #create(name: string, command: CreateCommand, base: ForkBase<Stream> | null): Promise<CreateOutcome> {
    let stream = this.#known(name);
    while (stream === null) {
      const loaded = await this.#load(name);
      stream = this.#known(name);
      if (loaded === null && stream === null) return this.#createNew(name, command, base);
    }
    const isExpired = stream.isCurrent && stream.isExpired(this.#context.clock.nowMs());
    if (isExpired) this.#expire(stream);
    else if (stream.isCurrent) return this.#compare(stream, command);
    if (stream.phase === "keeping" || stream.phase === "kept") return stream.whenGone(() => refuse("name-held-by-forks"));
    // The name is free: its deletion has been handed in, and the creation follows it.
    return this.#createNew(name, command, base);
  }

  #compare(stream: Stream, command: CreateCommand): MaybePromise<CreateOutcome> {
    const closed = stream.reservedClosed;
    const tail = stream.reservedTail;
    return stream.whenDurable((): CreateOutcome => {
      if (!matchesExisting(stream.config, closed, command)) return refuse("config-mismatch");
      return { kind: "created", created: false, contentType: stream.config.contentType, nextOffset: stream.offsetAt(tail), closed };
    });
  }

  #createNew(name: string, command: CreateCommand, base: ForkBase<Stream> | null): MaybePromise<CreateOutcome> {
    const { fork, ttlSeconds, expiresAtMs } = command;
    const nowMs = this.#context.clock.nowMs();
    if (fork === null) {
      const contentType = command.contentType ?? DEFAULT_CONTENT_TYPE;
      return this.#createAs(name, command, { contentType, createdAtMs: nowMs, ttlSeconds, expiresAtMs, forkedFrom: null });
    }
    // The source may have gone, or dropped its beginning, while its place, or what has the name, was looked for.
    const isThere = base !== null && base.source.phase === "live" && !base.source.isExpired(nowMs) && base.source.stored.earliest === base.origin.earliest.position;
    return isThere ? this.#createAs(name, command, forkConfig(base.source.config, command, nowMs, base.origin)) : this.#createFork(name, command, fork);
  }

  async #createFork(name: string, command: CreateCommand, fork: ForkRequest): Promise<CreateOutcome> {
    const source = await this.find(fork.source);
    if (!(source instanceof Stream)) return refuseSource(source);
    source.retain();
    try {
      const origin = await forkOrigin(source, fork, command.contentType);
      return "kind" in origin ? origin : await this.#create(name, command, { source, origin });
    } finally {
      source.release();
    }
  }

  #createAs(name: string, { body, closed }: CreateCommand, config: StreamConfig): MaybePromise<CreateOutcome> {
    const payload = frameBody(formatOf(config.contentType), body, "create");
    if (!Buffer.isBuffer(payload)) return payload;
    if (!this.#hasRoom()) return refuse("overloaded", { detail: "Too many streams are in use." });
    return this.#storeNew(name, config, { payload, closes: closed, producer: null, seq: null, atMs: config.createdAtMs });
  }

  #storeNew(name: string, config: StreamConfig, initial: AppendRecord): Promise<CreateOutcome> | Refused {
    const predecessor = this.#streams.get(name) ?? null;
    let onSettled: (how: Settlement) => void = () => undefined;
    const outcome = new Promise<Settlement>((resolve) => (onSettled = resolve));
    const stored = this.#context.storage.create(name, config, initial, (how) => {
      stream.creationSettled(how);
      if (how === "durable") stream.predecessor = null;
      else this.#abandon(stream);
      onSettled(how);
    });
    if (typeof stored === "string") return refuseRejected(stored);
    const stream = new Stream(this.#context, stored, initial);
    stream.predecessor = predecessor;
    this.#streams.set(stream.name, stream);
    this.#expiries.add(stream);
    return outcome.then((how) => {
      if (how !== "durable") return refuse(how);
      const nextOffset = stream.offsetAt((config.forkedFrom?.point ?? 0) + initial.payload.length);
      return { kind: "created", created: true, contentType: config.contentType, nextOffset, closed: initial.closes };
    });
  }

  /** A creation failed: the name goes back to what it was, if the deletion before it failed as well. */
  #abandon(stream: Stream): void {
    this.#expiries.remove(stream);
    if (this.#streams.get(stream.name) !== stream) return;
    this.#streams.delete(stream.name);
    let { predecessor } = stream;
    // Those whose own creation failed have kept what was there before them.
    while (predecessor?.phase === "gone") predecessor = predecessor.predecessor;
    if (predecessor?.phase === "live") this.#streams.set(stream.name, predecessor);
  }

  /** Deletes the stream of this name (specification 4.4). */
  async delete(name: string): Promise<DeleteOutcome> {
    const stream = this.#known(name) ?? (await this.#loadToDelete(name));
    if (stream === null) return NOT_FOUND;
    if (!(stream instanceof Stream)) return stream;
    if (!stream.isCurrent) return this.#refuseGone(stream);
    const current = this.#unlessExpired(stream);
    if (!(current instanceof Stream)) return current;
    return new Promise((resolve) => {
      const rejection = this.#remove(stream, (how) => resolve(how === "durable" ? { kind: "deleted" } : refuse(how)));
      if (rejection !== null) resolve(rejection);
    });
  }

  /** One that is damaged can't be loaded, but it can be got rid of. */
  async #loadToDelete(name: string): Promise<Stream | DeleteOutcome | null> {
    try {
      const loaded = await this.#load(name);
      return this.#known(name) ?? loaded;
    } catch (error) {
      if (!(error instanceof DamagedStreamError)) throw error;
      const how = await this.#context.storage.deleteDamaged(name);
      return how === "durable" ? { kind: "deleted" } : refuseRejected(how);
    }
  }

  #remove(stream: Stream, settle: (how: Settlement) => void): Refused | null {
    const hasForks = stream.stored.forkCount > 0;
    const rejection = this.#context.storage.delete(stream.stored, (how) => {
      if (how === "durable") stream.phase = hasForks ? "kept" : "gone";
      else stream.deletionFailed(how);
      if (how === "durable") this.#letGo(stream);
      else if (stream.phase === "live") this.#restore(stream);
      settle(how);
    });
    if (rejection !== null) return refuseRejected(rejection);
    stream.phase = hasForks ? "keeping" : "deleting";
    this.#expiries.remove(stream);
    return null;
  }

  /** Its deletion failed. */
  #restore(stream: Stream): void {
    if (!this.#streams.has(stream.name)) this.#streams.set(stream.name, stream);
    this.#expiries.add(stream);
  }

  #letGo(stream: Stream): void {
    if (stream.phase === "gone" && this.#streams.get(stream.name) === stream) this.#streams.delete(stream.name);
    stream.deleted();
  }

  /** Its time is over: gone for everybody at once, and from disk as soon as that is durable. */
  #expire(stream: Stream): void {
    if (!stream.isCurrent) return;
    const rejection = this.#remove(stream, () => undefined);
    if (rejection !== null) this.#expiries.add(stream);
    stream.deleted();
  }

  #load(name: string): MaybePromise<Stream | null> {
    const underway = this.#loading.get(name);
    if (underway !== undefined) return underway;
    if (this.#context.storage.lacks(name)) return null;
    const loading = this.#loadNow(name).finally(() => this.#loading.delete(name));
    this.#loading.set(name, loading);
    return loading;
  }

  async #loadNow(name: string): Promise<Stream | null> {
    const stored = await this.#context.storage.load(name);
    if (stored === null || this.#streams.has(name)) return null;
    this.#hasRoom();
    const stream = new Stream(this.#context, stored, null);
    this.#streams.set(stream.name, stream);
    if (stream.isCurrent) this.#expiries.add(stream);
    return stream;
  }

  /** Whether one more stream may be in memory; begins to let an idle one go when there are too many. */
  #hasRoom(): boolean {
    const excess = this.#streams.size + 1 - this.#maxLoadedStreams - this.#releasing;
    if (excess <= 0) return true;
    let looks = MAX_LOOKS_FOR_ROOM;
    for (; looks > 0; looks -= 1) if (this.#advanceHand()) break;
    return looks > 0 || excess <= this.#maxLoadedStreams;
  }

  /** One step of the clock algorithm: a stream used since the last round is passed by once. */
  #advanceHand(): boolean {
    let next = this.#clockHand?.next();
    if (next === undefined || next.done === true) {
      this.#clockHand = this.#streams.values();
      next = this.#clockHand.next();
      if (next.done === true) return false;
    }
    const stream = next.value;
    if (!stream.recentlyUsed && stream.readyToLeave()) {
      void this.#forget(stream);
      return true;
    }
    stream.recentlyUsed = false;
    return false;
  }

  async #forget(stream: Stream): Promise<void> {
    if (this.#known(stream.name) !== stream) return;
    this.#releasing += 1;
    try {
      await this.#context.storage.persist(stream.stored);
    } catch (fault) {
      this.#log.error("a stream could not be written to its files", { stream: stream.name, fault: String(fault) });
      return;
    } finally {
      this.#releasing -= 1;
    }
    if (!stream.idle || stream.recentlyUsed || this.#streams.get(stream.name) !== stream) return;
    if (!this.#context.storage.release(stream.stored)) return;
    this.#streams.delete(stream.name);
    this.#expiries.remove(stream);
  }

  /** Passes over every loaded stream once and lets those go that nobody used since the last round. */
  async #idleRound(): Promise<void> {
    const streams = this.#streams.values();
    // Those that come meanwhile are looked at in the next round.
    let left = this.#streams.size;
    const worker = async (): Promise<void> => {
      for (const stream of streams) {
        if (this.#stopped || (left -= 1) < 0) return;
        if (!stream.recentlyUsed && stream.readyToLeave()) await this.#forget(stream);
        else stream.recentlyUsed = false;
        // One with nothing to write is let go without any wait; requests are not to wait for thousands of them.
        if (left % IDLE_BURST === 0) await new Promise<void>((resolve) => setImmediate(resolve));
      }
    };
    await Promise.all(Array.from({ length: FORGOTTEN_AT_ONCE }, worker));
    this.#clockHand = null;
    if (!this.#stopped) this.#idleTimer = this.#context.clock.after(IDLE_ROUND_MS, () => void this.#idleRound());
  }

  /** Finding a stream that has expired expires it. */
  async #look(name: string): Promise<void> {
    try {
      const found = await this.find(name);
      if (found instanceof Stream) found.trimExcess();
    } catch (error) {
      // That is none of the search's business: the engine has told of it.
      if (!(error instanceof DamagedStreamError)) throw error;
    }
  }

  #trimAged(): void {
    for (const stream of this.#streams.values()) stream.trimExcess();
  }
}

const NOT_FOUND: Refused = refuse("stream-not-found");
const GONE: Refused = refuse("stream-gone");
