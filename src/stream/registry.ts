import { DEFAULT_CONTENT_TYPE, formatOf } from "../protocol/content-type.js";
import {
  DamagedStreamError,
  type AppendRecord,
  type MaybePromise,
  type Settlement,
  type StorageHealth,
  type StreamConfig,
} from "../storage/storage.js";
import type { AppendCommand, CreateCommand, ForkRequest } from "./rules/command.js";
import { refuseConfig } from "./rules/config-difference.js";
import { frameBody, framedInTurns } from "./rules/decide.js";
import { LoadedStreams, type LoadedStreamsOptions } from "./eviction/loaded-streams.js";
import { ExpiryQueue, type TtlMode } from "./rules/expiry.js";
import { forkConfig, forkOrigin, refuseSource, type ForkBase } from "./rules/fork.js";
import {
  refuse,
  TOO_MANY_PRODUCERS,
  type AnswerAppend,
  type CreateOutcome,
  type DeleteOutcome,
  type Refused,
} from "./rules/outcome.js";
import { KEEP_ALL, RetentionTimer, type RetentionLimits } from "./loaded/retention.js";
import { refuseRejected, Stream, type StreamContext } from "./loaded/stream.js";
import { Sweep, type SweepFigures } from "./sweep.js";
import type { StorageFigures } from "../storage/figures.js";

/** The options of a registry. */
export interface RegistryOptions extends LoadedStreamsOptions {
  readonly ttlMode: TtlMode;
  /** How much of each stream is kept; all of it when absent. */
  readonly retention?: RetentionLimits;
}

/** What became of streams since the start. */
export interface RegistryFigures extends SweepFigures {
  /** Streams in memory. */
  readonly loaded: number;
  /** Idle streams that left memory. */
  readonly evicted: number;
  /** Streams whose time was over. */
  readonly expired: number;
}

/**
 * Finds, creates and deletes streams by name. It loads a stream on first use, and decides when a name changes hands: at
 * creation, deletion and expiry.
 */
export class Registry {
  readonly #context: StreamContext;
  readonly #streams: LoadedStreams;
  readonly #loading = new Map<string, Promise<Stream | Refused | null>>();
  readonly #expiries: ExpiryQueue<Stream>;
  readonly #retentionTimer: RetentionTimer;
  readonly #sweep: Sweep;
  #expired = 0;

  constructor(options: RegistryOptions) {
    const { storage, clock, log, ttlMode, retention = KEEP_ALL } = options;
    const streams = (this.#streams = new LoadedStreams(options, (stream) => this.#expiries.remove(stream)));
    this.#context = {
      storage,
      clock,
      ttlMode,
      retention,
      producers: streams.producers,
      hasRoomForProducer: () => streams.makeRoomForProducers(1),
    };
    this.#retentionTimer = new RetentionTimer(clock, retention, () => this.#trimAged());
    this.#expiries = new ExpiryQueue(clock, (stream) => this.#expire(stream));
    this.#sweep = new Sweep(this.#context, log, (name) => this.#look(name));
  }

  /** How many streams are in memory. */
  get loadedCount(): number {
    return this.#streams.size;
  }

  /** How many producers the streams in memory remember. */
  get producerCount(): number {
    return this.#streams.producers.count;
  }

  /** What became of streams since the start, and how many there are. */
  figures(): RegistryFigures {
    const { size, evicted } = this.#streams;
    return { loaded: size, evicted, expired: this.#expired, ...this.#sweep.figures };
  }

  /** The figures of the storage engine. */
  storageFigures(): StorageFigures {
    return this.#context.storage.figures();
  }

  health(): StorageHealth {
    return this.#context.storage.health();
  }

  /** Begins evicting idle streams and looking for expired ones on disk. */
  start(): void {
    this.#streams.start();
    this.#sweep.start();
    this.#retentionTimer.start();
  }

  /** Stops all background work. */
  stop(): void {
    this.#streams.stop();
    this.#sweep.stop();
    this.#expiries.stop();
    this.#retentionTimer.stop();
  }

  /** The stream as readers see it, or why there is none. Waits until a creation or deletion under way is durable. */
  find(name: string): MaybePromise<Stream | Refused> {
    const stream = this.#streams.get(name);
    if (stream === null) return this.#findOnDisk(name);
    if (stream.phase === "live") return this.#unlessExpired(stream);
    if (stream.phase === "kept") return GONE;
    return this.#findWhenSettled(stream);
  }

  async #findOnDisk(name: string): Promise<Stream | Refused> {
    const loaded = await this.#load(name);
    if (loaded === null && this.#streams.get(name) === null) return NOT_FOUND;
    return isRefused(loaded) ? loaded : this.find(name);
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

  /** Appends to or closes the stream of this name; `answer` gets the outcome (docs/api.md, Append). */
  append(name: string, command: AppendCommand, answer: AnswerAppend): MaybePromise<void> {
    const stream = this.#streams.get(name);
    if (stream === null) return this.#appendLoaded(name, command, answer);
    if (!stream.isCurrent)
      return this.#afterDeletion(stream, (refused) =>
        refused === null ? this.append(name, command, answer) : answer(refused),
      );
    const current = this.#unlessExpired(stream);
    return current instanceof Stream ? stream.append(command, answer) : answer(current);
  }

  async #appendLoaded(name: string, command: AppendCommand, answer: AnswerAppend): Promise<void> {
    const loaded = await this.#load(name);
    if (loaded === null && this.#streams.get(name) === null) answer(NOT_FOUND);
    else if (isRefused(loaded)) answer(loaded);
    else await this.append(name, command, answer);
  }

  /**
   * Calls `next` when the deletion of a stream has settled: with the reason why the name has no stream to change, or
   * with `null` when the name has a new stream. All waiting requests continue in the order in which they came, so the
   * first creation makes the new stream.
   */
  #afterDeletion<T>(stream: Stream, next: (refused: Refused | null) => MaybePromise<T>): Promise<T> {
    return stream.deletion.then((refused) => {
      if (refused !== null) return next(refused);
      const now = this.#streams.get(stream.name);
      return next(now === null ? NOT_FOUND : now === stream ? GONE : null);
    });
  }

  /** Creates the stream of this name, or finds one with the same configuration (docs/api.md, Create a stream). */
  create(name: string, command: CreateCommand): Promise<CreateOutcome> {
    return this.#create(name, command, null);
  }

  /** `base` is the place of a fork, once it has been found. */
  async #create(name: string, command: CreateCommand, base: ForkBase<Stream> | null): Promise<CreateOutcome> {
    let stream = this.#streams.get(name);
    while (stream === null) {
      const loaded = await this.#load(name);
      if (isRefused(loaded)) return loaded;
      stream = this.#streams.get(name);
      if (loaded === null && stream === null) return this.#createNew(name, command, base);
    }
    if (stream.isCurrent && !stream.isExpired(this.#context.clock.nowMs())) return this.#compare(stream, command);
    this.#expire(stream);
    return this.#afterDeletion<CreateOutcome>(stream, (refused) => {
      if (refused === null) return this.#create(name, command, base);
      if (refused === GONE) return HELD_BY_FORKS;
      return refused === NOT_FOUND ? this.#createNew(name, command, base) : refused;
    });
  }

  #compare(stream: Stream, command: CreateCommand): MaybePromise<CreateOutcome> {
    const closed = stream.reservedClosed;
    const tail = stream.reservedTail;
    return stream.whenDurable((): CreateOutcome => {
      const refusal = refuseConfig(stream.config, closed, command);
      return (
        refusal ?? {
          kind: "created",
          created: false,
          contentType: stream.config.contentType,
          nextOffset: stream.offsetAt(tail),
          closed,
        }
      );
    });
  }

  #createNew(name: string, command: CreateCommand, base: ForkBase<Stream> | null): MaybePromise<CreateOutcome> {
    const { fork, ttlSeconds, expiresAtMs } = command;
    const nowMs = this.#context.clock.nowMs();
    if (fork === null) {
      const contentType = command.contentType ?? DEFAULT_CONTENT_TYPE;
      return this.#createAs(name, command, {
        contentType,
        createdAtMs: nowMs,
        ttlSeconds,
        expiresAtMs,
        forkedFrom: null,
      });
    }
    // The source may have been deleted, or trimmed, while the place was searched for or a deletion was waited for.
    const isThere =
      base !== null &&
      base.source.phase === "live" &&
      !base.source.isExpired(nowMs) &&
      base.source.stored.earliest === base.origin.earliest.position;
    return isThere
      ? this.#createAs(name, command, forkConfig(base.source.config, command, nowMs, base.origin))
      : this.#createFork(name, command, fork);
  }

  async #createFork(name: string, command: CreateCommand, fork: ForkRequest): Promise<CreateOutcome> {
    const source = await this.find(fork.source);
    if (!(source instanceof Stream)) return refuseSource(source);
    source.retain();
    try {
      const origin = await forkOrigin(source, fork, command.contentType);
      return "kind" in origin
        ? origin
        : await this.#create(name, await framedInTurns(source.config, command), { source, origin });
    } finally {
      source.release();
    }
  }

  #createAs(name: string, { body, closed }: CreateCommand, config: StreamConfig): MaybePromise<CreateOutcome> {
    const framed = frameBody(formatOf(config.contentType), body, "create");
    if (framed.kind === "refused") return framed;
    if (!this.#streams.makeRoomForStream()) return refuse("overloaded", { detail: "Too many streams are in use." });
    return this.#storeNew(name, config, {
      payload: framed.bytes,
      messages: framed.messages,
      closes: closed,
      producer: null,
      seq: null,
      atMs: config.createdAtMs,
    });
  }

  #storeNew(name: string, config: StreamConfig, initial: AppendRecord): Promise<CreateOutcome> | Refused {
    let onSettled: (how: Settlement) => void = () => undefined;
    const outcome = new Promise<Settlement>((resolve) => (onSettled = resolve));
    const stored = this.#context.storage.create(name, config, initial, (how) => {
      stream.creationSettled(how);
      if (how !== "durable") this.#streams.drop(stream);
      onSettled(how);
    });
    if (typeof stored === "string") return refuseRejected(stored);
    const stream = new Stream(this.#context, stored, initial);
    this.#streams.add(stream);
    this.#expiries.add(stream);
    return outcome.then((how) => {
      if (how !== "durable") return refuse(how);
      const nextOffset = stream.offsetAt((config.forkedFrom?.point ?? 0) + initial.payload.length);
      return { kind: "created", created: true, contentType: config.contentType, nextOffset, closed: initial.closes };
    });
  }

  /** Deletes the stream of this name (docs/api.md, Delete a stream). */
  async delete(name: string): Promise<DeleteOutcome> {
    let stream = this.#streams.get(name);
    try {
      // A stream in memory is deleted at once, so that later requests for the name see the deletion.
      while (stream === null) {
        const loaded = await this.#load(name, true);
        if (isRefused(loaded)) return loaded;
        stream = this.#streams.get(name);
        if (loaded === null && stream === null) return NOT_FOUND;
      }
    } catch (error) {
      // A damaged stream can't be loaded, but it can be deleted.
      if (!(error instanceof DamagedStreamError)) throw error;
      const how = await this.#context.storage.deleteDamaged(name);
      return how === "durable" ? { kind: "deleted" } : refuseRejected(how);
    }
    if (!stream.isCurrent) return this.#afterDeletion(stream, (refused) => refused ?? this.delete(name));
    const current = this.#unlessExpired(stream);
    return current instanceof Stream ? ((await this.#remove(current)) ?? { kind: "deleted" }) : current;
  }

  /** Submits the deletion of a stream. Resolves to `null` when it is durable, else to why it failed. */
  #remove(stream: Stream): Promise<Refused | null> {
    const hasForks = stream.stored.forkCount > 0;
    stream.deletion = new Promise((resolve) => {
      const rejection = this.#context.storage.delete(stream.stored, (how) => {
        if (how === "durable") this.#removed(stream, hasForks);
        else this.#notRemoved(stream);
        resolve(how === "durable" ? null : refuse(how));
      });
      if (rejection !== null) return resolve(refuseRejected(rejection));
      stream.phase = hasForks ? "keeping" : "deleting";
      this.#expiries.remove(stream);
    });
    return stream.deletion;
  }

  #removed(stream: Stream, hasForks: boolean): void {
    stream.phase = hasForks ? "kept" : "gone";
    if (!hasForks) this.#streams.drop(stream);
    stream.deleted();
  }

  /** The deletion failed: the stream lives on, unless its creation has failed too. */
  #notRemoved(stream: Stream): void {
    if (stream.phase === "gone") return;
    stream.phase = "live";
    this.#expiries.add(stream);
  }

  /** Deletes a stream whose time is over. Readers no longer find it from now on. */
  #expire(stream: Stream): void {
    if (!stream.isCurrent) return;
    this.#expired += 1;
    void this.#remove(stream);
    if (stream.isCurrent) this.#expiries.add(stream);
    stream.deleted();
  }

  /**
   * Loads the stream of this name; `null` when there is none, or when it was loaded meanwhile. A stream that is loaded
   * to be deleted needs no room.
   */
  #load(name: string, isToGo = false): MaybePromise<Stream | Refused | null> {
    const underway = this.#loading.get(name);
    if (underway !== undefined) return underway;
    if (this.#context.storage.lacks(name)) return null;
    const loading = this.#loadNow(name, isToGo).finally(() => this.#loading.delete(name));
    this.#loading.set(name, loading);
    return loading;
  }

  async #loadNow(name: string, isToGo: boolean): Promise<Stream | Refused | null> {
    const { storage } = this.#context;
    const stored = await storage.load(name);
    if (stored === null || this.#streams.get(name) !== null) return null;
    this.#streams.makeRoomForStream();
    const hasRoom = isToGo || this.#streams.makeRoomForProducers(stored.state.producers?.size ?? 0);
    // Where storage has to keep it in memory anyway, it can be used.
    if (!hasRoom && storage.release(stored)) return TOO_MANY_PRODUCERS;
    const stream = new Stream(this.#context, stored, null);
    this.#streams.add(stream);
    if (stream.isCurrent) this.#expiries.add(stream);
    return stream;
  }

  /** Finds a stream, which expires it if its time is over, and trims it. */
  async #look(name: string): Promise<void> {
    try {
      const found = await this.find(name);
      if (found instanceof Stream) found.trimExcess();
    } catch (error) {
      // The engine has logged the damage; the sweep goes on.
      if (!(error instanceof DamagedStreamError)) throw error;
    }
  }

  #trimAged(): void {
    for (const stream of this.#streams.values()) stream.trimExcess();
  }
}

const NOT_FOUND: Refused = refuse("stream-not-found");
const GONE: Refused = refuse("stream-gone");
const HELD_BY_FORKS: Refused = refuse("name-held-by-forks");

function isRefused(loaded: Stream | Refused | null): loaded is Refused {
  return loaded !== null && !(loaded instanceof Stream);
}
