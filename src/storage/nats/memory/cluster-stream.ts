import { EventEmitter } from "node:events";
import { MutableState } from "../../state.js";
import type {
  Position,
  ProducerMark,
  RetentionLimits,
  Standing,
  StoredStream,
  StreamConfig,
  StreamObserver,
} from "../../storage.js";
import type { Change, MarkRow, PlacedChange } from "../log/change.js";

/** Tokens count from the start of a part; parts are cut by position alone, so every front end cuts them alike. */
const PART_BYTES = 2 ** 32;

/** What a stream is made of when it is loaded or created. */
export interface StreamOrigin {
  readonly id: string;
  readonly name: string;
  readonly config: StreamConfig;
  /**
   * The source of a fork, as it was when the fork was loaded; it may be deleted and kept for it. `null` also where it
   * is gone, as a fork that keeps nothing of what it shares does not hold it.
   */
  readonly parent: ClusterStream | null;
}

/** A message's payload, where the cache keeps it. */
export interface RecentMessage {
  readonly sequence: number;
  readonly from: Position;
  readonly to: Position;
  readonly payload: Buffer;
  /** Where its appends end, ascending; `null` where that is only at its own end. */
  readonly ends: readonly Position[] | null;
}

const MAX_HINTS = 64;

/** Forks go without a message of their source: they are counted again after so long. */
const RECOUNT_MS = 10_000;

/** What the rest of the engine wants to know of a stream in memory. */
interface ClusterStreamEvents {
  /** Somebody follows it from now on, or nobody does. */
  watched: [isWatched: boolean];
}

/** One stream as this front end knows it: what is durable by some message, perhaps not the last. */
export class ClusterStream extends EventEmitter<ClusterStreamEvents> implements StoredStream {
  readonly id: string;
  readonly name: string;
  readonly config: StreamConfig;
  readonly parent: ClusterStream | null;
  readonly state: MutableState;
  earliest: Position;
  /** When the newest append in the first message that is kept was made. */
  earliestAtMs: number;
  newestAtMs: number | null = null;
  /** The messages of all records, also of those that are no longer kept. */
  messages = 0;
  /** The last message of its subject that is known here; 0 before the first. */
  sequence = 0;
  /** The message with the last snapshot of producers, and how many came since; `null` where each message has them. */
  snapshot: { sequence: number; behind: number } | null = null;
  created = false;
  standing: Standing = "live";
  /** With forks that other front ends have deleted since they were counted. */
  forkCount = 0;
  forksCountedAtMs = 0;
  /** Whether the last that is known here may not be what is durable: an outcome is not known. */
  isStale = false;
  /** What the heads of all its messages say alike; `null` before the first is made. */
  fixedFields: string | null = null;
  /** Its subject in the log; `null` before it is first asked for. */
  subject: string | null = null;
  /** The newest messages, each behind the one before; the cache keeps them. */
  recent: RecentMessage[] = [];
  /** Where messages begin, and their sequences: numbers alone, as an object for each would outlive its message. */
  readonly #hintPositions: Position[] = [];
  readonly #hintSequences: number[] = [];
  #observer: StreamObserver | null = null;

  constructor({ id, name, config, parent }: StreamOrigin) {
    super();
    this.id = id;
    this.name = name;
    this.config = config;
    this.parent = parent;
    this.state = new MutableState(config.forkedFrom?.point);
    this.earliest = config.forkedFrom?.earliest.position ?? 0;
    this.earliestAtMs = config.createdAtMs;
  }

  /** Where its own bytes begin. */
  get ownStart(): Position {
    return this.config.forkedFrom?.point ?? 0;
  }

  get forkDepth(): number {
    return this.parent === null ? 0 : this.parent.forkDepth + 1;
  }

  get observer(): StreamObserver | null {
    return this.#observer;
  }

  set observer(observer: StreamObserver | null) {
    const wasWatched = this.#observer !== null;
    this.#observer = observer;
    if (wasWatched !== (observer !== null)) this.emit("watched", observer !== null);
  }

  get isInUse(): boolean {
    return this.#observer !== null;
  }

  partStartBefore(position: Position): Position {
    return position === 0 ? 0 : Math.floor((position - 1) / PART_BYTES) * PART_BYTES;
  }

  writerBefore(position: Position): string {
    const isInherited = position > 0 && position <= this.ownStart;
    if (!isInherited) return this.id;
    return this.parent?.writerBefore(position) ?? this.config.forkedFrom?.id ?? this.id;
  }

  hasPart(start: Position, length: number): boolean {
    const isPart = start % PART_BYTES === 0 && length <= PART_BYTES && (length > 0 || start === 0);
    return isPart && start + length <= this.state.tail;
  }

  /**
   * Takes in a message. One that follows the last known tells of each of its records; one further on tells of all that
   * is between, and then `producers` has the marks after it.
   */
  adopt(placed: PlacedChange, producers: ReadonlyMap<string, ProducerMark> | null): void {
    const { change, sequence, previous } = placed;
    const { tail } = this.state;
    if (previous === this.sequence) {
      let from = change.from;
      for (const record of change.records) {
        this.state.apply(record, record.length);
        this.#observer?.advanced(from, (from += record.length), record.closes);
      }
    } else {
      replaceState(this.state, change, producers);
      this.#observer?.advanced(tail, change.to, change.isClosed);
    }
    this.#note(change);
    this.sequence = sequence;
    this.created = true;
    this.hint(change.from, sequence);
    const { producers: where } = change;
    if (where.kind === "here") this.snapshot = null;
    else if (where.kind === "snapshot") this.snapshot = { sequence, behind: 0 };
    else this.snapshot = { sequence: where.sequence, behind: where.behind };
    this.#observer?.settled();
  }

  #note(change: Change): void {
    this.earliest = Math.max(this.earliest, change.earliest);
    this.earliestAtMs = change.earliestAtMs;
    this.messages = change.messages;
    this.newestAtMs = change.to > Math.max(change.earliest, this.ownStart) ? change.newestAtMs : null;
  }

  /** Another server has deleted it, or this one has: `kept` while forks need its bytes. */
  end(standing: Exclude<Standing, "live">): void {
    const wasLive = this.standing === "live";
    this.standing = standing;
    if (wasLive) this.#observer?.deleted();
  }

  /** Remembers where a message begins that a read or an append has come by; the oldest of very many are forgotten. */
  hint(position: Position, sequence: number): void {
    if (this.#hintPositions.length === MAX_HINTS) {
      this.#hintPositions.splice(0, MAX_HINTS / 4);
      this.#hintSequences.splice(0, MAX_HINTS / 4);
    }
    this.#hintPositions.push(position);
    this.#hintSequences.push(sequence);
  }

  /** The closest sequence at or before that of the message with the byte at `position`, as far as is known. */
  sequenceBefore(position: Position): number {
    let found = 0;
    for (const [at, sequence] of this.#hintSequences.entries())
      if (sequence > found && (this.#hintPositions[at] ?? 0) <= position) found = sequence;
    return found;
  }

  /** The closest sequence after that message. */
  sequenceAfter(position: Position): number {
    let found = this.sequence;
    for (const [at, sequence] of this.#hintSequences.entries())
      if (sequence < found && (this.#hintPositions[at] ?? 0) > position) found = sequence;
    return found;
  }

  /** Whether it is time to count the forks of a live stream again. */
  mayHaveFewerForks(nowMs: number): boolean {
    return this.standing === "live" && this.forkCount > 0 && nowMs - this.forksCountedAtMs >= RECOUNT_MS;
  }

  /** Whether `limits` keep nothing of the oldest message that is kept, by what the last one says of it. */
  isExcess(limits: RetentionLimits, nowMs: number): boolean {
    return isExcess(this.earliest, this.state.tail, this.earliestAtMs, limits, nowMs);
  }
}

/** Whether the oldest of what is kept between `earliest` and `tail` is beyond what `limits` keep. */
export function isExcess(
  earliest: Position,
  tail: Position,
  earliestAtMs: number,
  { maxBytes, maxAgeMs }: RetentionLimits,
  nowMs: number,
): boolean {
  return tail > earliest && (tail - earliest > maxBytes || earliestAtMs < nowMs - maxAgeMs);
}

/** The map of producers that rows stand for, in their order. */
export function marksOf(rows: readonly MarkRow[]): Map<string, ProducerMark> {
  return new Map(rows.map(([id, epoch, seq, atMs]) => [id, { epoch, seq, atMs }]));
}

/** Makes `state` that after a change. */
function replaceState(state: MutableState, change: Change, producers: ReadonlyMap<string, ProducerMark> | null): void {
  state.tail = change.to;
  state.closed = change.isClosed;
  state.closedAtMs = change.closedAtMs;
  state.closedBy = change.closedBy;
  state.lastSeq = change.lastSeq;
  state.producers = producers === null || producers.size === 0 ? null : new Map(producers);
  state.touchedAtMs = Math.max(state.touchedAtMs, change.newestAtMs);
}

/** The streams that the engine gives out are its own. */
export function ownStream(stored: StoredStream): ClusterStream {
  if (stored instanceof ClusterStream) return stored;
  throw new TypeError("a stream of another storage engine");
}
