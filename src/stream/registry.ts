import { DamagedStreamError, type MaybePromise, type StorageHealth, type StoredStream } from "../storage/storage.js";
import { Creations, isRefused } from "./creations.js";
import type { AppendCommand, CreateCommand } from "./rules/command.js";
import { LoadedStreams, type LoadedStreamsOptions } from "./eviction/loaded-streams.js";
import { ExpiryQueue, type TtlMode } from "./rules/expiry.js";
import {
  DAMAGED_WITH_FORKS,
  GONE,
  MAX_ROUNDS,
  MOVED,
  NOT_FOUND,
  refusalOfFault,
  refuseRejected,
  refuseSettled,
  TOO_MANY_STREAMS,
  type AnswerAppend,
  type CreateOutcome,
  type DeleteOutcome,
  type Refused,
} from "./rules/outcome.js";
import { chain } from "./loaded/chain.js";
import { KEEP_ALL, RetentionTimer, type RetentionLimits } from "./loaded/retention.js";
import { ReadRoom, Stream, type Contention, type StreamContext } from "./loaded/stream.js";
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
  readonly #creations: Creations;
  #expired = 0;

  constructor(options: RegistryOptions) {
    const { storage, clock, log, ttlMode, retention = KEEP_ALL } = options;
    const streams = (this.#streams = new LoadedStreams(options, (stream) => this.#left(stream)));
    this.#context = {
      storage,
      readRoom: new ReadRoom(),
      clock,
      ttlMode,
      retention,
      producers: streams.producers,
      hasRoomForProducer: () => streams.makeRoomForProducers(1),
      decideAgain: (stream, command, answer, contention) => this.#decideAgain(stream, command, answer, contention),
    };
    this.#retentionTimer = new RetentionTimer(clock, retention, () => this.#trimAged());
    this.#expiries = new ExpiryQueue(clock, (stream) => this.#expireDue(stream));
    this.#sweep = new Sweep(this.#context, log, (name) => this.find(name));
    this.#creations = new Creations({
      context: this.#context,
      streams,
      expiries: this.#expiries,
      find: (name) => this.find(name),
      load: (name) => this.#load(name),
      refreshed: (stream) => this.#refreshed(stream),
      expire: (stream) => this.#expire(stream),
      afterDeletion: (stream, next) => this.#afterDeletion(stream, next),
    });
  }

  /** How many streams are in memory. */
  get loadedCount(): number {
    return this.#streams.size;
  }

  /** How many producers they remember. */
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

  /**
   * The stream as readers see it, or why there is none: no older than what any server acknowledged before. Waits until
   * a creation or deletion under way is durable. Throws StorageBusyError.
   */
  find(name: string): MaybePromise<Stream | Refused> {
    const stream = this.#streams.get(name);
    if (stream === null) return this.#findOnDisk(name);
    if (stream.phase !== "live" && stream.phase !== "kept") return this.#findWhenSettled(stream);
    const refreshed = this.#refreshed(stream);
    if (!(refreshed instanceof Promise)) return this.#foundFresh(stream);
    return refreshed.then((isItsName) => (isItsName ? this.#foundForAll(stream) : this.find(name)));
  }

  /**
   * What is fresh in memory, where other servers write as well: a stream that expires is over once it is deleted, as
   * others may know of a later use.
   */
  #foundForAll(stream: Stream): MaybePromise<Stream | Refused> {
    const found = this.#foundFresh(stream);
    if (stream.phase !== "deleting" && stream.phase !== "keeping") return found;
    return stream.deletion.then((refused) => (refused === MOVED ? this.find(stream.name) : found));
  }

  #foundFresh(stream: Stream): MaybePromise<Stream | Refused> {
    if (stream.phase !== "kept") return this.#unlessExpired(stream);
    return this.#streams.whenNotHeld(stream, (refused) => refused ?? this.find(stream.name));
  }

  /**
   * Makes the state of a stream in memory fresh, at once where no other server writes. False where the name does not
   * belong to it any more, or is changing hands.
   */
  #refreshed(stream: Stream): MaybePromise<boolean> {
    const refreshed = stream.refresh();
    if (!(refreshed instanceof Promise)) return true;
    const { phase } = stream;
    return refreshed.then(() => {
      this.#dropIfOver(stream);
      return this.#streams.get(stream.name) === stream && stream.phase === phase;
    });
  }

  /** Takes note that another server has deleted the stream. */
  #dropIfOver(stream: Stream): void {
    if (!stream.isOver) return;
    this.#expiries.remove(stream);
    stream.phase = stream.stored.standing === "kept" ? "kept" : "gone";
    if (stream.phase === "gone") this.#streams.drop(stream);
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
  append(
    name: string,
    command: AppendCommand,
    answer: AnswerAppend,
    contention: Contention | null = null,
  ): MaybePromise<void> {
    const stream = this.#streams.get(name);
    if (stream === null) return this.#appendLoaded(name, command, answer, contention);
    if (!stream.isCurrent)
      return this.#afterDeletion(stream, (refused) =>
        refused === null ? this.append(name, command, answer, contention) : answer(refused),
      );
    if (!stream.isExpired(this.#context.clock.nowMs())) {
      stream.recentlyUsed = true;
      return stream.append(command, answer, contention);
    }
    return chain(this.#expiredOr(stream), (current) => {
      if (current === null) return this.append(name, command, answer, contention);
      return current instanceof Stream ? current.append(command, answer, contention) : answer(current);
    });
  }

  async #appendLoaded(
    name: string,
    command: AppendCommand,
    answer: AnswerAppend,
    contention: Contention | null,
  ): Promise<void> {
    const loaded = await this.#load(name);
    if (loaded === null && this.#streams.get(name) === null) answer(NOT_FOUND);
    else if (isRefused(loaded)) answer(loaded);
    else await this.append(name, command, answer, contention);
  }

  /** Another server has changed the stream before an append of ours: it is decided on what is there now. */
  #decideAgain(stream: Stream, command: AppendCommand, answer: AnswerAppend, contention: Contention): void {
    const isTooLong = this.#context.clock.nowMs() - contention.sinceMs > MAX_CONTENTION_MS;
    if (contention.rounds > MAX_ROUNDS || isTooLong) return answer(MOVED);
    this.#dropIfOver(stream);
    const appended = this.append(stream.name, command, answer, contention);
    if (appended instanceof Promise) appended.catch((fault: unknown) => answer(refusalOfFault(fault)));
  }

  /**
   * Calls `next` when the deletion of a stream has settled: with the reason why the name has no stream to change, or
   * with `null` when the name has a new stream. All waiting requests continue in the order in which they came, so the
   * first creation makes the new stream.
   */
  #afterDeletion<T>(stream: Stream, next: (refused: Refused | null) => MaybePromise<T>): Promise<T> {
    return stream.deletion.then((refused) => {
      // Others may have deleted its last fork, and used its name again.
      if (stream.phase === "kept")
        return chain(this.#refreshed(stream), (isItsName) =>
          isItsName ? this.#streams.whenNotHeld(stream, next) : next(null),
        );
      if (refused === MOVED) return next(null);
      return next(refused ?? this.#streams.whyNotThere(stream));
    });
  }

  /** Creates the stream of this name, or finds one with the same configuration (docs/api.md, Create a stream). */
  create(name: string, command: CreateCommand): Promise<CreateOutcome> {
    return this.#creations.create(name, command);
  }

  /** Deletes the stream of this name (docs/api.md, Delete a stream). */
  delete(name: string): Promise<DeleteOutcome> {
    return this.#delete(name, 0);
  }

  async #delete(name: string, round: number): Promise<DeleteOutcome> {
    let stream = this.#streams.get(name);
    try {
      // A stream in memory is deleted at once, so that later requests for the name see the deletion.
      while (stream === null) {
        const loaded = await this.#load(name, true);
        // Who was looking for it already found no room; it needs none.
        if (isRefused(loaded)) continue;
        stream = this.#streams.get(name);
        if (loaded === null && stream === null) return NOT_FOUND;
      }
    } catch (error) {
      // A damaged stream can't be loaded, but it can be deleted.
      if (!(error instanceof DamagedStreamError)) throw error;
      const how = await this.#context.storage.deleteDamaged(name);
      if (how === "needed") return DAMAGED_WITH_FORKS;
      if (how === "durable") return { kind: "deleted" };
      const refused = refuseSettled(how);
      return refused === MOVED ? this.#deleteAgain(name, round) : refused;
    }
    if (!stream.isCurrent) return this.#afterDeletion(stream, (refused) => refused ?? this.#deleteAgain(name, round));
    const isExpired = stream.isExpired(this.#context.clock.nowMs());
    const deletable = isExpired ? this.#expiredOr(stream) : stream;
    const current = deletable instanceof Promise ? await deletable : deletable;
    if (!(current instanceof Stream)) return current ?? this.#deleteAgain(name, round);
    const refused = await this.#remove(current);
    if (refused === MOVED) return this.#deleteAgain(name, round);
    return refused ?? { kind: "deleted" };
  }

  /** A stream whose time seems to be over: itself, where that is not so, or why there is none; `null` to look again. */
  #expiredOr(stream: Stream): MaybePromise<Stream | Refused | null> {
    return chain(this.#refreshed(stream), (isItsName) => (isItsName ? this.#unlessExpired(stream) : null));
  }

  #deleteAgain(name: string, round: number): MaybePromise<DeleteOutcome> {
    return round < MAX_ROUNDS ? this.#delete(name, round + 1) : MOVED;
  }

  /** Submits the deletion of a stream. Resolves to `null` when it is durable, else to why it failed. */
  #remove(stream: Stream): Promise<Refused | null> {
    const hasForks = stream.stored.forkCount > 0;
    stream.deletion = new Promise((resolve) => {
      const rejection = this.#context.storage.delete(stream.stored, (how) => {
        if (how === "durable") this.#removed(stream, hasForks || stream.stored.standing === "kept");
        else this.#notRemoved(stream);
        resolve(how === "durable" ? null : refuseSettled(how));
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
  }

  /** The deletion failed: the stream lives on, unless its creation has failed too. */
  #notRemoved(stream: Stream): void {
    if (stream.phase === "gone") return;
    stream.phase = "live";
    this.#expiries.add(stream);
    this.#dropIfOver(stream);
  }

  /** The time of a stream is over, unless another server has used it. */
  #expireDue(stream: Stream): void {
    const refreshed = this.#refreshed(stream);
    if (!(refreshed instanceof Promise)) return this.#expire(stream);
    const later = (): void => void (stream.phase === "live" && this.#expiries.add(stream));
    refreshed.then((isItsName) => {
      if (isItsName && stream.isExpired(this.#context.clock.nowMs())) this.#expire(stream);
      else later();
    }, later);
  }

  /** Deletes a stream whose time is over. Readers no longer find it from now on. */
  #expire(stream: Stream): void {
    if (!stream.isCurrent) return;
    void this.#remove(stream).then((refused) => void (this.#expired += refused === null ? 1 : 0));
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
    for (;;) {
      const stored = await storage.load(name);
      if (stored === null || this.#streams.get(name) !== null) return null;
      const lacked = isToGo ? null : this.#streams.makeRoomToLoad(stored.state.producers?.size ?? 0);
      // Where storage has to keep it in memory anyway, it can be used.
      if (lacked === null || !storage.release(stored)) return this.#addLoaded(stored);
      const refused = lacked === TOO_MANY_STREAMS ? await this.#streams.whenLeft() : lacked;
      if (refused !== null) return refused;
    }
  }

  #addLoaded(stored: StoredStream): Stream {
    const stream = new Stream(this.#context, stored, null);
    this.#streams.add(stream);
    if (stream.isCurrent) this.#expiries.add(stream);
    return stream;
  }

  #left(stream: Stream): void {
    this.#expiries.remove(stream);
    if (stream.phase === "live") this.#sweep.left(stream.name, stream.deadlineMs);
  }

  #trimAged(): void {
    for (const stream of this.#streams.values()) stream.trimExcess();
  }
}

/** For how long an append is decided again because other servers were first. */
const MAX_CONTENTION_MS = 5000;
