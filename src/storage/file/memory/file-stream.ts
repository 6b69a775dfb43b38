import type {
  AppendRecord,
  DamagedStreamError,
  Position,
  RetentionLimits,
  Settlement,
  Standing,
  StoredStream,
  StreamConfig,
  StreamObserver,
} from "../../storage.js";
import { MutableState } from "../../state.js";
import { AppendIndex, indexOfOne, UNKNOWN_INDEX } from "../format/append-index.js";
import { Lineage } from "./lineage.js";
import type { StreamIdentity } from "../format/record.js";
import { endOf, isExcess, oldestOf, partsOf, type Part, type Segment } from "./segment.js";
import { lastRestoreMs, NEVER_RESTORED, writerOf, type Restores } from "./restores.js";
import type { Sidecar } from "../format/sidecar.js";
import type { SmallSet } from "./small-set.js";
import { StreamDisk } from "./stream-disk.js";
import { StreamTies } from "./stream-ties.js";
import { appended, CachedTail } from "./tail-cache.js";

/** A position, and the start of the segment that its byte (or the byte before it) is in. */
export interface Place {
  readonly position: Position;
  readonly segmentStart: Position;
}

/** The segment that the next append goes to, unless it begins a new one. */
export interface ReservedSegment {
  readonly start: Position;
  readonly firstAtMs: number;
}

/** When a stream begins a new segment: at about this size, or when its first byte is this old. */
export interface SegmentRoll {
  readonly bytes: number;
  readonly ageMs: number;
}

const NO_LINEAGE = new Lineage<FileStream>();
const ORIGIN: Place = { position: 0, segmentStart: 0 };

/** An entry that waits for a large payload before it. */
export interface HeldEntry {
  /** The payload is in its segment: the entry goes on. */
  go(): void;
  /** It never will be. */
  fail(how: Settlement): void;
}

/** One stream as the engine holds it: what is durable, what is reserved ahead of it, and what is where on disk. */
export class FileStream implements StoredStream {
  // What each append needs comes first, side by side: of thousands of streams in use, the processor's cache has none.
  readonly state: MutableState;
  /** By start. */
  segments: Segment[];
  /** The last of them once something was appended to it: appends find it without the list. */
  #newest: Segment | null = null;
  readonly cached = new CachedTail();
  observer: StreamObserver | null = null;
  // What is reserved ahead of what is durable: the admission and the journal keep that.
  /** Entries submitted and not settled. */
  pending = 0;
  /** Raised when pending entries fail: what was submitted before no longer fits. */
  generation = 0;
  reservedTail: Position;
  reservedSegment: ReservedSegment;
  /** Where the stream begins, and the segment of the byte before: what is before it was dropped, or is about to be. */
  earliestPlace: Place;
  /** Where it will begin when the trim on its way is on disk; `null` without one. */
  pendingTrim: Place | null = null;
  /** Segments that hold something else than what was written, by start; `null` until the first. */
  damagedSegments: SmallSet | null = null;
  /** Entries that wait for a large payload before them to reach its segment, `null` while there is none. */
  held: HeldEntry[] | null = null;
  /** The journal file in which `handle` stands for this stream. */
  boundSequence = -1;
  handle = 0;
  /** The batch of the last durable change. */
  lastBatch: number;
  /** Whether it is among the streams with bytes that no segment has yet. */
  awaitsFlush = false;
  /** What is wrong with its files, `null` while nothing is known. */
  damage: DamagedStreamError | null = null;
  /** Bytes before this position are in segment files. */
  written: Position;
  /** Where the bytes before its own are; to be set before they are read. */
  lineage = NO_LINEAGE;
  /** The directory's; to be set before appends and offsets are made. */
  restores: Restores = NEVER_RESTORED;
  readonly id: string;
  readonly name: string;
  readonly config: StreamConfig;
  readonly directory: string;
  created = false;
  deleted = false;
  /** What forks need of it, and it of its source: the fork ties keep that. */
  readonly ties: StreamTies<FileStream>;
  /** What is in its own files: whoever writes those keeps it. */
  readonly disk: StreamDisk;
  /** Whether the stream layer has it. */
  handedOut = false;

  /** `sidecar` is what the disk says of the stream; `null` for a new one. */
  constructor(identity: StreamIdentity, directory: string, sidecar: Sidecar | null) {
    this.id = identity.id;
    this.name = identity.name;
    this.config = identity.config;
    this.directory = directory;
    this.state = sidecar?.state ?? new MutableState(identity.config.forkedFrom?.point);
    this.earliestPlace = sidecar?.earliest ?? identity.config.forkedFrom?.earliest ?? ORIGIN;
    this.segments = (sidecar?.segments ?? []).map(({ start, length, crc, firstAtMs, newestAtMs, index: entry }) => {
      const index = entry === "one" ? null : entry === null ? UNKNOWN_INDEX : AppendIndex.of(entry, length);
      return { start, length, crc, firstAtMs, newestAtMs, index, unchecked: { length, crc, checking: null } };
    });
    this.written = this.state.tail;
    this.reservedTail = this.state.tail;
    this.reservedSegment = this.#lastSegment();
    this.lastBatch = sidecar?.batch ?? 0;
    this.ties = new StreamTies(sidecar, this.earliest);
    this.disk = new StreamDisk(sidecar);
  }

  get #last(): Segment | undefined {
    return this.#newest ?? this.segments.at(-1);
  }

  get earliest(): Position {
    return this.earliestPlace.position;
  }

  get standing(): Standing {
    if (this.deleted) return "gone";
    return this.ties.softDeleted ? "kept" : "live";
  }

  get forkCount(): number {
    return this.ties.forkCount;
  }

  /** Whether no other trim is on its way, and no deletion. */
  get mayBeTrimmed(): boolean {
    return this.pendingTrim === null && !this.isLeaving;
  }

  /** Whether it is deleted, or about to be. */
  get isLeaving(): boolean {
    return this.deleted || this.ties.deletions > 0;
  }

  get forkDepth(): number {
    return this.ties.parent === null ? 0 : this.ties.parent.forkDepth + 1;
  }

  get newestAtMs(): number | null {
    return this.#last?.newestAtMs ?? null;
  }

  /** Where the stream would begin without the segments beyond what `limits` keep; `null` when there is none. */
  excessPlace(limits: RetentionLimits, nowMs: number): Place | null {
    const { tail } = this.state;
    if (!isExcess(oldestOf(this.#parts(), nowMs), tail, limits, nowMs)) return null;
    return this.trimPlace(Math.max(tail - limits.maxBytes, this.#endOfOlderThan(nowMs - limits.maxAgeMs, nowMs)));
  }

  /** The end of the last segment with only bytes that were appended before `atMs`; `earliest` when there is none. */
  #endOfOlderThan(atMs: number, nowMs: number): Position {
    let older = this.earliest;
    let before = older;
    for (const { firstAtMs, newestAtMs, end } of this.#parts()) {
      if (firstAtMs < atMs) older = before;
      if (newestAtMs < atMs) older = end;
      // What a clock that was ahead dated in the future is no newer than what comes after it.
      else if (newestAtMs <= nowMs) break;
      before = end;
    }
    return older;
  }

  /** What is kept, oldest first: segments, or as much of others' as was inherited. */
  *#parts(): Generator<Part> {
    for (const { owner, to } of this.lineage.ranges) {
      if (to > this.earliest) yield* partsOf(owner.segments, this.earliest, to);
    }
    yield* partsOf(this.segments, this.earliest, this.state.tail);
  }

  /** Where the stream would begin without the segments that end at or before `before`; `null` when there is none. */
  trimPlace(before: Position): Place | null {
    let place: Place | null = null;
    if (this.ties.holdsTrims) return place;
    for (const { segmentStart, end } of this.#parts()) {
      // Appends on their way may go to the last segment: it has not ended.
      const isOpen = end === this.state.tail && this.reservedTail > end;
      if (end > before || isOpen) break;
      place = { position: end, segmentStart };
    }
    return place;
  }

  /** Whether something on its way, a fork or an observer needs it in memory. */
  get isInUse(): boolean {
    const { dependents, pendingForks } = this.ties;
    return this.pending > 0 || this.held !== null || this.observer !== null || dependents > 0 || pendingForks > 0;
  }

  /** Whether its files hold all of its durable state. */
  get isPersisted(): boolean {
    const { hasUnsyncedSidecar, hasNotice, persistedBatch } = this.disk;
    return !hasUnsyncedSidecar && !hasNotice && this.lastBatch === persistedBatch;
  }

  /** Whether its files hold all of its durable state, or say that they can't. */
  get isOnDisk(): boolean {
    return this.damage === null ? this.isPersisted && this.disk.hasSidecar : this.disk.hasNotice;
  }

  partStartBefore(position: Position): Position {
    const { position: earliest, segmentStart } = this.earliestPlace;
    if (position <= earliest && (position > segmentStart || position === earliest)) return segmentStart;
    if (position <= this.lineage.end && position > 0)
      return this.lineage.at(position - 1).owner.partStartBefore(position);
    // A dropped segment's token, which a reader may still hold, has to sort as before.
    return this.segmentAt(position - 1)?.start ?? position;
  }

  writerBefore(position: Position): string {
    if (position <= this.lineage.end && position > 0) return this.lineage.at(position - 1).owner.writerBefore(position);
    if (this.restores === NEVER_RESTORED) return this.id;
    // Of what was dropped is only known that it is no younger than what is left.
    const segment = this.segmentAt(position - 1) ?? this.segments[0];
    return writerOf(this.id, segment?.firstAtMs ?? Infinity, this.restores);
  }

  hasPart(start: Position, length: number): boolean {
    const { position: earliest, segmentStart } = this.earliestPlace;
    if (start === segmentStart && start + length === earliest) return true;
    const position = start + length;
    if (position <= this.lineage.end && position > 0) return this.lineage.at(position - 1).owner.hasPart(start, length);
    const segment = this.segmentAt(start);
    return segment !== undefined && segment.start === start && length <= segment.length;
  }

  /** The segment that holds the byte at `position`, or would hold it at the tail. */
  segmentAt(position: Position): Segment | undefined {
    const last = this.#last;
    if (last !== undefined && position >= last.start) return last;
    let low = 0;
    let high = this.segments.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.segments[middle]?.start ?? 0) <= position) low = middle;
      else high = middle - 1;
    }
    const found = this.segments[low];
    return found !== undefined && found.start <= position ? found : undefined;
  }

  /** Takes the place for the next `length` bytes, appended at `atMs`; an append is never split between two segments. */
  reserve(length: number, atMs: number, roll: SegmentRoll): Place {
    const position = this.reservedTail;
    if (length > 0) {
      const { start } = this.reservedSegment;
      const used = position - start;
      // Also where its first byte is from a clock that was ahead by more.
      const isOld = roll.ageMs < Infinity && Math.abs(atMs - this.reservedSegment.firstAtMs) >= roll.ageMs;
      // The segment is about to be dropped, or is damaged.
      const isLost =
        start < Math.max(this.earliest, this.pendingTrim?.position ?? 0) || this.damagedSegments?.has(start) === true;
      // A segment from before a restore may have been gone on with elsewhere.
      const restoredAtMs = lastRestoreMs(this.restores);
      const isRestored = this.reservedSegment.firstAtMs < restoredAtMs && atMs >= restoredAtMs;
      if (used === 0 || used + length > roll.bytes || isOld || isLost || isRestored)
        this.reservedSegment = { start: position, firstAtMs: atMs };
    }
    this.reservedTail = position + length;
    return { position, segmentStart: this.reservedSegment.start };
  }

  /** What is reserved and not durable will never be, nor will the frame that says what the handle means. */
  unreserve(): void {
    this.generation += 1;
    this.unbind();
    this.disk.fitted.clear();
    this.reservedTail = this.state.tail;
    this.reservedSegment = this.#lastSegment();
  }

  /** The frame that says what the handle means failed: the next says it again. */
  unbind(): void {
    this.boundSequence = -1;
  }

  /** The reserved segment when nothing is on its way. `NaN` is a float, as times are: V8 converts nothing later. */
  #lastSegment(): ReservedSegment {
    const last = this.#last;
    return last !== undefined && endOf(last) > this.earliest ? last : { start: this.state.tail, firstAtMs: NaN };
  }

  /** `change` with `length` bytes in the segment at `segmentStart` is durable as part of `batch`. */
  advance(change: AppendRecord, length: number, segmentStart: Position, batch: number): void {
    if (length > 0) this.#extend(segmentStart, length, change);
    this.state.apply(change, length);
    this.lastBatch = batch;
  }

  #extend(segmentStart: Position, length: number, { atMs, messages }: AppendRecord): void {
    const last = this.#last;
    if (last?.start === segmentStart) {
      this.#newest = last;
      const index = (last.index ??= indexOfOne(last.length, last.firstAtMs));
      if (index !== UNKNOWN_INDEX) index.add(length, messages, atMs);
      last.length += length;
      if (atMs > last.newestAtMs) last.newestAtMs = atMs;
      return;
    }
    const index = messages === 1 ? null : new AppendIndex(atMs);
    index?.add(length, messages, atMs);
    const segment = { start: segmentStart, length, crc: 0, firstAtMs: atMs, newestAtMs: atMs, index, unchecked: null };
    this.segments = appended(this.segments, segment);
    this.#newest = segment;
    // The same from now on: one object less for an append to look at.
    if (this.reservedSegment.start === segmentStart) this.reservedSegment = segment;
  }

  /** The bytes before `place` are no longer part of the stream; the writer drops them. */
  trim(place: Place, batch: number): void {
    this.earliestPlace = place;
    this.lastBatch = batch;
  }

  /** The fork `id` needs the bytes before `neededBefore`. */
  link(id: string, neededBefore: Position, batch: number): void {
    this.ties.link(id, neededBefore, this.earliest);
    this.lastBatch = batch;
  }

  /** The fork `id` is gone. */
  unlink(id: string, batch: number): void {
    this.ties.unlink(id, this.earliest);
    this.lastBatch = batch;
  }

  /** It is deleted, but for what its forks need. */
  softDelete(batch: number): void {
    this.ties.softDeleted = true;
    this.lastBatch = batch;
  }

  /** Whether there are files of which the stream keeps nothing. */
  get hasExcess(): boolean {
    const [first] = this.segments;
    return first !== undefined && endOf(first) <= this.earliest;
  }

  /** Forgets a segment whose file is gone. */
  forgetSegment(segment: Segment): void {
    this.segments.splice(this.segments.indexOf(segment), 1);
    this.#newest = null;
    this.disk.forget(segment.start);
  }

  /** A read was noted. */
  touch(atMs: number, batch: number): void {
    this.state.touchedAtMs = Math.max(this.state.touchedAtMs, atMs);
    this.lastBatch = batch;
  }
}

/** The streams that the engine gives out are its own. */
export function ownStream(stored: StoredStream): FileStream {
  if (stored instanceof FileStream) return stored;
  throw new TypeError("a stream of another storage engine");
}
