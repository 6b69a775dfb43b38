import { EventEmitter } from "node:events";
import type { Clock } from "../../../ops/clock.js";
import {
  DamagedStreamError,
  type ForkOrigin,
  type MaybePromise,
  type ProducerMark,
  type Standing,
  type StreamConfig,
} from "../../storage.js";
import { MutableState } from "../../state.js";
import { decodeChange, decodeEdge, snapshotOf, type PlacedChange } from "../log/change.js";
import type { LogMessage, ReplicatedLog } from "../log/replicated-log.js";
import type { Subjects } from "../log/subjects.js";
import { ClusterStream, marksOf } from "../memory/cluster-stream.js";
import type { MessageCache } from "../memory/message-cache.js";
import { ownerAt } from "./message-search.js";

/** What is read at once of the messages since a snapshot. */
const SINCE_SNAPSHOT_BYTES = 1024 * 1024;

/** What the rooms of the engine share. */
export interface ClusterParts {
  readonly log: ReplicatedLog;
  readonly subjects: Subjects;
  readonly cache: MessageCache;
  readonly clock: Clock;
}

/** A stream in memory, by its name and id. */
type Known = (name: string, id: string) => ClusterStream | null;

/** What the rest of the engine is told of streams in memory. */
interface StateEvents {
  /** Its name does not stand for it any more. */
  gone: [stream: ClusterStream];
  /** The log has this for its last, and no longer what was known: it is to be read anew. */
  lost: [stream: ClusterStream, sequence: number];
}

/** Reads the states of streams from the log: again for those in memory, and for the first time for others. */
export class StateReader extends EventEmitter<StateEvents> {
  readonly #parts: ClusterParts;
  /** Requests that were sent: they may have missed what was acknowledged since. */
  readonly #sent = new Map<ClusterStream, Promise<void>>();
  /** Those that go out when the one before has its answer: all who ask until then share it. */
  readonly #waiting = new Map<ClusterStream, Promise<void>>();
  /** The last sequence of names that have no stream, for the next creation. */
  readonly #tombstones = new Map<string, number>();

  constructor(parts: ClusterParts) {
    super();
    this.#parts = parts;
  }

  /** Makes a stream's state no older than anything that was acknowledged before the call. */
  refresh(stream: ClusterStream): Promise<void> {
    const waiting = this.#waiting.get(stream);
    if (waiting !== undefined) return waiting;
    const sent = this.#sent.get(stream);
    if (sent === undefined) return this.#send(stream);
    const next = sent.then(
      () => this.#sendNext(stream),
      () => this.#sendNext(stream),
    );
    this.#waiting.set(stream, next);
    return next;
  }

  #sendNext(stream: ClusterStream): Promise<void> {
    this.#waiting.delete(stream);
    return this.#send(stream);
  }

  #send(stream: ClusterStream): Promise<void> {
    const sent = this.#refreshNow(stream).finally(() => this.#sent.delete(stream));
    this.#sent.set(stream, sent);
    return sent;
  }

  async #refreshNow(stream: ClusterStream): Promise<void> {
    if (stream.standing === "gone") return;
    // Hints may bring more meanwhile than the answer has.
    const isThere = await this.#takeLast(stream);
    if (isThere === null) this.#end(stream, "gone");
    if (hasGone(stream)) return;
    const nowMs = this.#parts.clock.nowMs();
    if (seemsExpired(stream.config, stream.state.touchedAtMs, nowMs)) await this.#takeTouch(stream);
    if (stream.mayHaveFewerForks(nowMs)) await this.recountForks(stream);
    stream.isStale = false;
  }

  /** Takes in what the stream's subject has last; `null` where that is nothing, or can't be. */
  async #takeLast(stream: ClusterStream): Promise<true | null> {
    const { sequence: known } = stream;
    const taken = this.#fromLast(stream.name, async (last): Promise<true> => {
      if (last.sequence < known) this.#lose(stream, last.sequence);
      else if (last.sequence > stream.sequence) await this.take(stream, decodeChange(last));
      // Its forks come and go without a message of its own.
      else if (stream.standing === "kept") await this.#takeDeletion(stream, last.sequence);
      return true;
    });
    return taken.catch((fault: unknown) => {
      if (fault instanceof DamagedStreamError) return null; // whoever looks for the name is told
      throw fault;
    });
  }

  /** Takes in what the stream's subject has, where it is newer than what is known; the cache keeps it if `isCached`. */
  take(stream: ClusterStream, placed: PlacedChange, isCached = true): MaybePromise<void> {
    const { change, sequence, previous } = placed;
    if (sequence <= stream.sequence || stream.standing === "gone") return;
    if (change.id !== stream.id) return this.#end(stream, "gone");
    // Each begins where the one before it ends.
    if (change.from < stream.state.tail) return this.#lose(stream, sequence);
    if (change.deletedAtMs !== null) return this.#takeDeletion(stream, sequence);
    const { kind } = change.producers;
    const adopt = (producers: ReadonlyMap<string, ProducerMark> | null): void => {
      // Another may have come while the producers were looked for, or the end.
      if (sequence <= stream.sequence || hasGone(stream)) return;
      // Whoever is told of it reads it at once.
      if (isCached) this.#parts.cache.add(stream, placed);
      else this.#parts.cache.drop(stream);
      stream.adopt(placed, producers);
    };
    if (previous === stream.sequence) adopt(null);
    else if (kind === "here") adopt(marksOf(change.producers.marks));
    else return this.#producersAt(stream.name, placed).then(adopt);
  }

  /** The stream is deleted, by the message of this sequence: it is kept while it has forks. */
  async #takeDeletion(stream: ClusterStream, sequence: number): Promise<void> {
    const forks = await this.countForks(stream);
    stream.sequence = Math.max(stream.sequence, sequence);
    stream.forkCount = forks;
    if (forks === 0) this.#noteTombstone(stream.name, sequence);
    this.#end(stream, forks > 0 ? "kept" : "gone");
  }

  /** What was known is not there any more, as after a power failure of servers that had not yet synced it. */
  #lose(stream: ClusterStream, sequence: number): void {
    this.emit("lost", stream, sequence);
    this.#end(stream, "gone");
  }

  #end(stream: ClusterStream, standing: Exclude<Standing, "live">): void {
    stream.end(standing);
    if (standing === "gone") this.emit("gone", stream);
  }

  /** Counts the forks of a live stream again: any front end may have deleted some. */
  async recountForks(stream: ClusterStream): Promise<void> {
    stream.forksCountedAtMs = this.#parts.clock.nowMs();
    stream.forkCount = await this.countForks(stream);
  }

  /** How many forks of a stream are there, or are being made. */
  countForks({ name, id }: Pick<ClusterStream, "name" | "id">): Promise<number> {
    const { log, subjects } = this.#parts;
    return log.count(subjects.ofEdges(name, id));
  }

  /** The names of some forks of a stream, those that were made first. */
  async forkNames({ name, id }: Pick<ClusterStream, "name" | "id">, count: number): Promise<readonly string[]> {
    const { log, subjects } = this.#parts;
    const names: string[] = [];
    for (let from = 1; names.length < count;) {
      const edge = await log.next(subjects.ofEdges(name, id), from);
      if (edge === null) break;
      names.push(decodeEdge(edge.head).fork);
      from = edge.sequence + 1;
    }
    return names;
  }

  /** The last sequence of a name that has no stream, as far as is known: what a creation has to expect. */
  expectedFor(name: string): number {
    const known = this.#tombstones.get(name) ?? 0;
    this.#tombstones.delete(name);
    return known;
  }

  /** The sequence of the tombstone that a name has now; 0 where it has nothing, `null` where a stream has the name. */
  async tombstoneOf(name: string): Promise<number | null> {
    const { log, subjects } = this.#parts;
    const last = await log.last(subjects.ofStream(name));
    if (last === null) return 0;
    const { change, sequence } = decodeChange(last);
    return change.deletedAtMs !== null && (await this.countForks({ name, id: change.id })) === 0 ? sequence : null;
  }

  /** Notes that a name has no stream since the message of this sequence. */
  #noteTombstone(name: string, sequence: number): void {
    if (this.#tombstones.size >= MAX_TOMBSTONES) this.#tombstones.clear();
    this.#tombstones.set(name, sequence);
  }

  /** The stream of this name, of this `id` unless that is `null`; `kept` where it is deleted and has forks. */
  load(name: string, known: Known, id: string | null = null): Promise<ClusterStream | null> {
    return this.#fromLast(name, (last) => this.#loadAt(name, last, known, id));
  }

  /** What `make` makes of the last message of a stream; `null` where it has none. */
  async #fromLast<T>(name: string, make: (last: LogMessage) => Promise<T>): Promise<T | null> {
    const { log, subjects } = this.#parts;
    const subject = subjects.ofStream(name);
    let last = await log.last(subject);
    for (let round = 0; last !== null; round += 1) {
      try {
        return await make(last);
      } catch (fault) {
        // What it needs may go once others have deleted or trimmed it: then it is what it is now.
        const now: LogMessage | null = fault instanceof DamagedStreamError ? await log.last(subject) : last;
        if (now?.sequence === last.sequence || round === MAX_LOADS) throw fault;
        last = now;
      }
    }
    return null;
  }

  async #loadAt(name: string, last: LogMessage, known: Known, wanted: string | null): Promise<ClusterStream | null> {
    const placed = decodeChange(last);
    const { id, config, deletedAtMs, earliest } = placed.change;
    // One that has the name since may be a fork of the one that asks for its source.
    if (wanted !== null && id !== wanted) return null;
    const isDeleted = deletedAtMs !== null;
    const forkCount = await this.countForks({ name, id });
    if (isDeleted && forkCount === 0) {
      this.#noteTombstone(name, last.sequence);
      return null;
    }
    const parent = config.forkedFrom === null ? null : await this.#parentOf(config.forkedFrom, known);
    const stream = new ClusterStream({ id, name, config, parent });
    const { owner } = ownerAt(stream, earliest);
    // A source may be gone once retention has left nothing of what is shared.
    if (earliest < owner.ownStart) throw lostSource(name, owner.config.forkedFrom?.name ?? owner.name);
    stream.adopt(placed, await this.#producersAt(name, placed));
    stream.forkCount = forkCount;
    stream.forksCountedAtMs = this.#parts.clock.nowMs();
    if (isDeleted) stream.standing = "kept";
    if (config.ttlSeconds !== null) await this.#takeTouch(stream);
    return stream;
  }

  /**
   * What can be known of a stream that can't be loaded: enough to delete it, and no more. `null` where nothing has the
   * name, but one that is kept for its forks is told.
   */
  async loadDamaged(name: string): Promise<ClusterStream | null> {
    const { log, subjects } = this.#parts;
    const last = await log.last(subjects.ofStream(name));
    if (last === null) return null;
    const placed = decodeChange(last);
    const { id, config, deletedAtMs } = placed.change;
    const stream = new ClusterStream({ id, name, config, parent: null });
    stream.adopt(placed, NO_PRODUCERS);
    await this.recountForks(stream);
    return deletedAtMs === null || stream.forkCount > 0 ? stream : null;
  }

  async #parentOf({ name, id, point }: ForkOrigin, known: Known): Promise<ClusterStream | null> {
    const parent = known(name, id) ?? (await this.load(name, known, id));
    // One in memory may not know yet of what the fork shares.
    if (parent !== null && parent.state.tail < point) await this.refresh(parent);
    return parent;
  }

  async #takeTouch({ name, id, state }: ClusterStream): Promise<void> {
    state.touchedAtMs = Math.max(state.touchedAtMs, await this.touchedAtMs(name, id));
  }

  /** When a stream was last read, as `touch` has noted it; 0 where it has not. */
  async touchedAtMs(name: string, id: string): Promise<number> {
    const { log, subjects } = this.#parts;
    const touch = await log.last(subjects.ofTouch(name));
    return touch?.head === id ? Number(touch.body.toString()) : 0;
  }

  async #producersAt(name: string, placed: PlacedChange): Promise<ReadonlyMap<string, ProducerMark> | null> {
    const { producers } = placed.change;
    if (producers.kind === "here") return marksOf(producers.marks);
    if (producers.kind === "snapshot") return marksOf(snapshotOf(placed));
    const { log, subjects } = this.#parts;
    const subject = subjects.ofStream(name);
    const from = await log.next(subject, producers.sequence);
    if (from?.sequence !== producers.sequence) throw lostSnapshot(name, producers.sequence);
    const state = new MutableState();
    state.producers = marksOf(snapshotOf(decodeChange(from)));
    let at = from.sequence;
    while (at < placed.sequence) {
      const more = await this.#rangeAfter(subject, at);
      if (more.length === 0) throw lostSnapshot(name, at);
      for (const { change, previous, sequence } of more) {
        if (previous !== at) throw lostSnapshot(name, at);
        at = sequence;
        for (const record of change.records) state.apply(record, record.length);
        if (at === placed.sequence) break;
      }
    }
    return state.producers;
  }

  async #rangeAfter(subject: string, sequence: number): Promise<readonly PlacedChange[]> {
    const { log } = this.#parts;
    const found: readonly LogMessage[] = await log.range(subject, sequence + 1, SINCE_SNAPSHOT_BYTES);
    if (found[0]?.previous === sequence) return found.map((message) => decodeChange(message));
    // That server is behind.
    const next = await log.next(subject, sequence + 1);
    return next === null ? [] : [decodeChange(next)];
  }
}

/** Asked where it may have gone since it was last looked at. */
function hasGone({ standing }: ClusterStream): boolean {
  return standing === "gone";
}

/** Whether the time of a stream is over by what is known of its last use, which others may have noted since. */
export function seemsExpired({ ttlSeconds }: StreamConfig, touchedAtMs: number, nowMs: number): boolean {
  return ttlSeconds !== null && touchedAtMs + ttlSeconds * 1000 <= nowMs;
}

const NO_PRODUCERS: ReadonlyMap<string, ProducerMark> = new Map();

/** How often a state is read anew that changes meanwhile. */
const MAX_LOADS = 8;

/** Names without a stream of which the last sequence is remembered; forgetting one costs a creation another round. */
const MAX_TOMBSTONES = 10_000;

function lostSource(fork: string, source: string): DamagedStreamError {
  return new DamagedStreamError(fork, source, "the stream that it was forked from is not there");
}

function lostSnapshot(name: string, sequence: number): DamagedStreamError {
  return new DamagedStreamError(name, `message ${sequence}`, "the snapshot of its producers can't be read");
}
