import { stopwatchMs, type Clock } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import type { StorageFigures, StorageObserver } from "../figures.js";
import { newStreamId } from "../stream-id.js";
import {
  type AppendRecord,
  type DamagedRejection,
  DamagedStreamError,
  type FoundPlace,
  type ListedStream,
  type MaybePromise,
  type Position,
  type Rejection,
  type RetentionLimits,
  type Settlement,
  type Storage,
  type StorageHealth,
  type StoredStream,
  type StreamConfig,
} from "../storage.js";
import { ClusterDamage } from "./cluster-damage.js";
import { busyInsteadOf, ClusterList } from "./cluster-list.js";
import { LogUnavailableError, type ReplicatedLog } from "./log/replicated-log.js";
import type { Subjects } from "./log/subjects.js";
import { ClusterStream, ownStream } from "./memory/cluster-stream.js";
import { MessageCache } from "./memory/message-cache.js";
import { Places } from "./reading/places.js";
import { StateReader, type ClusterParts } from "./reading/state-reader.js";
import { StreamBytes } from "./reading/stream-bytes.js";
import { whenLed } from "./reading/when-led.js";
import { Sweep } from "./sweep.js";
import { Watches } from "./watches.js";
import { ForkEdges } from "./writing/fork-edges.js";
import { Publisher } from "./writing/publisher.js";
import { Reserve } from "./writing/reserve.js";
import { Trims } from "./writing/trims.js";

/** What the engine is made of. */
export interface ClusterStorageOptions {
  readonly log: ReplicatedLog;
  readonly subjects: Subjects;
  readonly clock: Clock;
  /** The server's log. */
  readonly notices: Log;
  /** Memory for the newest messages of streams in use. */
  readonly cacheBytes: number;
  readonly observer?: StorageObserver;
  /** How long a change is sent again while nobody can say what became of it. */
  readonly timeoutMs: number;
  /** From 0 to 1; for tests to give. */
  readonly random?: () => number;
  /** Milliseconds since any moment; for tests to give. */
  readonly stopwatchMs?: () => number;
}

/** Payload that may wait for the log. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;

/** Keeps streams in a replicated log that other front ends write as well. */
export class ClusterStorage implements Storage {
  readonly streamList: ClusterList;
  readonly isRestored = false;
  readonly #options: ClusterStorageOptions;
  readonly #parts: ClusterParts;
  readonly #streams = new Map<string, ClusterStream>();
  readonly #states: StateReader;
  readonly #publisher: Publisher;
  readonly #bytes: StreamBytes;
  readonly #places: Places;
  readonly #edges: ForkEdges;
  readonly #reserve: Reserve;
  readonly #trims: Trims;
  readonly #watches: Watches;
  readonly #sweep: Sweep;
  readonly #damage: ClusterDamage;

  constructor(options: ClusterStorageOptions) {
    const { log, subjects, clock, cacheBytes, timeoutMs, random = Math.random } = options;
    this.#options = options;
    const parts = (this.#parts = { log, subjects, clock, cache: new MessageCache(cacheBytes) });
    const states = (this.#states = new StateReader(parts));
    states.on("gone", (stream) => this.#forget(stream));
    states.on("lost", (stream, sequence) => this.#lost(stream, sequence));
    const onFault = (fault: unknown): void => this.#failed("a change of a stream can't be told", fault);
    const { observer = null } = options;
    const onLost = (stream: ClusterStream): void => this.#watches.followAWhile(stream);
    const reserve = (this.#reserve = new Reserve(parts));
    const maxQueuedBytes = MAX_QUEUED_BYTES;
    const tries = { stopwatchMs: options.stopwatchMs ?? stopwatchMs, timeoutMs, random };
    this.#publisher = new Publisher({ parts, states, reserve, ...tries, maxQueuedBytes, onFault, onLost, observer });
    this.#bytes = new StreamBytes(parts, states);
    this.#places = new Places(parts);
    this.#edges = new ForkEdges(parts, states, { log, clock, ...tries });
    this.#trims = new Trims(parts, states, this.#publisher, this.#edges, reserve);
    const isIdle = (stream: ClusterStream): boolean => this.#publisher.isIdle(stream);
    this.#watches = new Watches(parts, states, isIdle, options.notices);
    this.#sweep = new Sweep(parts, states, this.#edges, reserve, newStreamId());
    const deletes = (stream: ClusterStream, settle: (how: Settlement) => void): void => this.#delete(stream, settle);
    this.#damage = new ClusterDamage(options.notices, states, deletes);
    this.streamList = new ClusterList(log, clock, (name) => this.#look(name));
    this.streamList.events.on("deleted", (name) => this.#damage.forget(name));
    log.listen(
      (text) => this.#behind("a list can't be told", this.streamList.heard(text)),
      () => {
        this.streamList.miss();
        this.#watches.refreshAll();
      },
    );
  }

  /** The most bytes of one append. */
  get maxRecordBytes(): number {
    return this.#parts.log.maxBodyBytes;
  }

  /** Whoever loads a name asks the log: others may have made it. */
  lacks(): boolean {
    return false;
  }

  async load(name: string): Promise<StoredStream | null> {
    const known = this.#streams.get(name);
    if (known !== undefined) {
      await this.refresh(known);
      if (this.#streams.get(name) === known) return known;
    }
    const loaded = await this.#fromLog(name);
    this.#damage.forget(name);
    const since = this.#streams.get(name);
    if (since !== undefined) return this.load(name);
    if (loaded !== null) this.#keep(loaded);
    return loaded;
  }

  #fromLog(name: string): Promise<ClusterStream | null> {
    return this.#whenLed(() => this.#states.load(name, (parent, id) => this.#knownAs(parent, id)));
  }

  #keep(stream: ClusterStream): void {
    this.#streams.set(stream.name, stream);
    this.#watches.add(stream);
  }

  #knownAs(name: string, id: string): ClusterStream | null {
    const known = this.#streams.get(name);
    return known?.id === id ? known : null;
  }

  async #look(name: string): Promise<StoredStream | null> {
    const known = this.#streams.get(name);
    if (known !== undefined) await this.refresh(known);
    const seen = known ?? (await this.#fromLog(name).catch(nullIfDamaged));
    return seen?.standing === "live" && seen.created ? seen : null;
  }

  refresh(stored: StoredStream): MaybePromise<void> {
    const stream = ownStream(stored);
    return stream.created ? this.#whenLed(() => this.#states.refresh(stream)) : undefined;
  }

  create(
    name: string,
    config: StreamConfig,
    initial: AppendRecord,
    settle: (how: Settlement) => void,
  ): StoredStream | Rejection {
    if (this.#streams.has(name)) throw new RangeError(`the name ${JSON.stringify(name)} is not free`);
    const { forkedFrom } = config;
    const parent = forkedFrom === null ? null : this.#knownAs(forkedFrom.name, forkedFrom.id);
    if (forkedFrom !== null && parent === null) return "tail-moved";
    const stream = new ClusterStream({ id: newStreamId(), name, config, parent });
    stream.sequence = this.#states.expectedFor(name);
    const prepare = forkedFrom === null ? null : () => this.#edges.tie(forkedFrom, name, stream.id);
    const settled = (how: Settlement): void => {
      if (how === "durable") {
        if (parent !== null) parent.forkCount += 1;
        this.streamList.tell("created", stream);
      } else this.#uncreated(stream, how);
      settle(how);
    };
    const rejection = this.#publisher.append(stream, initial, stream.state.tail, settled, prepare);
    if (rejection !== null) return rejection;
    this.#keep(stream);
    return stream;
  }

  #uncreated(stream: ClusterStream, how: Settlement): void {
    stream.standing = "gone";
    if (this.#streams.get(stream.name) === stream) this.#streams.delete(stream.name);
    // Where nobody can tell, the fork may be there: the sweep looks again.
    if (how !== "unknown") this.#behind("a fork's hold can't be given up", this.#edges.untie(stream));
  }

  append(
    stored: StoredStream,
    record: AppendRecord,
    expectedTail: Position,
    settle: (how: Settlement) => void,
  ): Rejection | null {
    const stream = ownStream(stored);
    if (stream.standing !== "live") {
      // Others have deleted it: whoever asks looks again.
      queueMicrotask(() => settle("tail-moved"));
      return null;
    }
    return this.#publisher.append(stream, record, expectedTail, record.closes ? this.#closing(stream, settle) : settle);
  }

  #closing(stream: ClusterStream, settle: (how: Settlement) => void): (how: Settlement) => void {
    return (how) => {
      if (how === "durable") this.streamList.tell("closed", stream);
      settle(how);
    };
  }

  barrier(stored: StoredStream, settle: (how: Settlement) => void, expectedTail?: Position): void {
    this.#publisher.barrier(ownStream(stored), settle, expectedTail ?? null);
  }

  whenFreed(stored: StoredStream): Promise<void> | null {
    if (stored.forkCount > 0) return null;
    return new Promise((resolve) => this.barrier(stored, () => resolve()));
  }

  touch(stored: StoredStream, atMs: number): boolean {
    const stream = ownStream(stored);
    if (stream.standing === "live") this.#publisher.touch(stream, atMs);
    return stream.standing === "live";
  }

  delete(stored: StoredStream, settle: (how: Settlement) => void): Rejection | null {
    const stream = ownStream(stored);
    if (stream.standing !== "live") {
      queueMicrotask(() => settle("tail-moved"));
      return null;
    }
    this.#delete(stream, settle);
    return null;
  }

  #delete(stream: ClusterStream, settle: (how: Settlement) => void): void {
    this.#publisher.delete(stream, (how) => {
      if (how === "durable") this.#deleted(stream);
      settle(how);
    });
  }

  #deleted(stream: ClusterStream): void {
    this.streamList.tell("deleted", stream);
    if (stream.standing !== "gone") return;
    this.#behind("the bytes of a deleted stream can't be dropped yet", this.#dropBytes(stream));
  }

  async #dropBytes(stream: ClusterStream): Promise<void> {
    await this.#edges.dropBytes(stream);
    await this.#reserve.refillFor(stream.name);
  }

  deleteDamaged(name: string): Promise<Settlement | DamagedRejection> {
    return this.#whenLed(() => this.#damage.delete(name));
  }

  trim(stored: StoredStream, limits: RetentionLimits, nowMs: number): void {
    const stream = ownStream(stored);
    if (this.#trims.isDue(stream, limits, nowMs))
      this.#behind("a stream can't be trimmed now", this.#trims.trim(stream, limits, nowMs));
  }

  read(stored: StoredStream, from: Position, maxBytes: number): MaybePromise<Buffer> {
    const read = (): MaybePromise<Buffer> => this.#bytes.read(ownStream(stored), from, maxBytes);
    const bytes = read();
    return bytes instanceof Promise ? this.#whenLed(read, bytes) : bytes;
  }

  endOfRead(stored: StoredStream, from: Position, maxBytes: number): Promise<Position> {
    return this.#whenLed(() => this.#bytes.endOfRead(ownStream(stored), from, maxBytes));
  }

  placeOfLast(
    stored: StoredStream,
    count: number,
    countIn: (from: Position, to: Position) => MaybePromise<number | null>,
  ): Promise<FoundPlace | null> {
    return this.#whenLed(() => this.#places.last(ownStream(stored), count, countIn));
  }

  placeSince(stored: StoredStream, atMs: number): Promise<Position> {
    return this.#whenLed(() => this.#places.since(ownStream(stored), atMs));
  }

  /** For the sweep: one front end at a time goes through all streams; for the others there is nothing to list then. */
  async *list(): AsyncGenerator<ListedStream> {
    try {
      yield* this.#sweep.streams();
    } catch (fault) {
      throw busyInsteadOf(fault);
    }
  }

  /** There is nothing to write: the log has it all. */
  async persist(): Promise<void> {}

  release(stored: StoredStream): boolean {
    const stream = ownStream(stored);
    if (stream.observer !== null || !this.#publisher.isIdle(stream)) return false;
    this.#forget(stream);
    return true;
  }

  #forget(stream: ClusterStream): void {
    if (this.#streams.get(stream.name) === stream) this.#streams.delete(stream.name);
    this.#watches.forget(stream);
    this.#bytes.forget(stream);
    this.#parts.cache.drop(stream);
  }

  #lost({ name, sequence: known }: ClusterStream, found: number): void {
    this.#options.notices.error("the log has lost messages of a stream", { stream: name, known, found });
  }

  health(): StorageHealth {
    return { ...this.#parts.log.health(), damagedStreams: this.#damage.streamCount };
  }

  figures(): StorageFigures {
    const { cache } = this.#parts;
    return {
      appendedBytes: this.#publisher.appendedBytes,
      queuedBytes: this.#publisher.queuedBytes,
      journalFill: 0,
      sealedFiles: 0,
      cacheBytes: cache.bytes,
      cacheLimitBytes: this.#options.cacheBytes,
      unwrittenBytes: 0,
      ...this.#trims.figures,
      recoveryMs: 0,
      recoveredRecords: 0,
      unansweredSeconds: 0,
      cluster: this.#publisher.figures,
    };
  }

  async close(): Promise<void> {
    this.#watches.stop();
    await this.#sweep.stop().catch((fault: unknown) => this.#leaseKept(fault));
    await this.#parts.log.close();
  }

  /** Without a connection the lease ends by its time. */
  #leaseKept(fault: unknown): void {
    const level = fault instanceof LogUnavailableError ? "debug" : "error";
    this.#options.notices[level]("the sweep's lease can't be given up", { fault: String(fault) });
  }

  /** Waits for a leader; whoever asked can ask again where that is not there in time. */
  async #whenLed<T>(ask: () => MaybePromise<T>, first: Promise<T> | null = null): Promise<T> {
    try {
      return await whenLed(this.#parts.log, ask, first);
    } catch (fault) {
      throw this.#damage.told(busyInsteadOf(fault));
    }
  }

  /** Goes on behind what was answered; the next sweep or read does what fails now. */
  #behind(what: string, work: Promise<unknown>): void {
    work.catch((fault: unknown) => this.#failed(what, fault));
  }

  #failed(what: string, fault: unknown): void {
    const level = fault instanceof LogUnavailableError ? "warn" : "error";
    this.#options.notices[level](what, { fault: String(fault) });
  }
}

/** A damaged stream is not listed; that it is damaged was told. */
function nullIfDamaged(fault: unknown): null {
  if (fault instanceof DamagedStreamError) return null;
  throw fault;
}
