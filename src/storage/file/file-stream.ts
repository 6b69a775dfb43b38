import type { AppendRecord, Position, Settlement, StoredStream, StreamConfig, StreamObserver } from "../storage.js";
import { MutableState } from "../state.js";
import type { StreamIdentity } from "./record.js";
import type { Sidecar } from "./sidecar.js";
import { CachedTail } from "./tail-cache.js";

/** A segment of a stream: `length` bytes of it are durable, `crc` is that of the bytes already in the segment's file. */
export interface Segment {
  readonly start: Position;
  length: number;
  crc: number;
  /** What another process wrote and nobody has compared with its CRC yet; `null` once that is done. */
  unchecked: UncheckedBytes | null;
}

/** The first bytes of a segment, as its sidecar knows them. */
export interface UncheckedBytes {
  readonly length: number;
  readonly crc: number;
  /** The comparison, while it is under way. */
  checking: Promise<void> | null;
}

/** Where an append goes. */
export interface Place {
  readonly position: Position;
  readonly segmentStart: Position;
}

/** An entry that waits for a large payload before it. */
export interface HeldEntry {
  /** The payload is in its segment: the entry goes on. */
  go(): void;
  /** It never will be. */
  fail(how: Settlement): void;
}

/** One stream as the engine holds it: what is durable, what is reserved ahead of it, and what is where on disk. */
export class FileStream implements StoredStream {
  readonly id: string;
  readonly name: string;
  readonly config: StreamConfig;
  readonly directory: string;
  readonly state: MutableState;
  readonly segments: Segment[];
  readonly cached = new CachedTail();
  observer: StreamObserver | null = null;
  created = false;
  deleted = false;
  /** Which stream had the name before, until the creation is durable. */
  predecessor: FileStream | null = null;
  /** What is wrong with its files, `null` while nothing is known. */
  damage: string | null = null;
  /** Entries handed in and not settled. */
  pending = 0;
  /** Raised when pending entries fail: what was handed in before no longer fits. */
  generation = 0;
  /** The generation in which its deletion was handed in; -1 before that. */
  deletionGeneration = -1;
  reservedTail: Position;
  reservedSegmentStart: Position;
  /** The journal file in which `handle` stands for this stream. */
  boundSequence = -1;
  handle = 0;
  /** The batch of the last durable change, and the one that the sidecar holds. */
  lastBatch: number;
  persistedBatch: number;
  /** Whether the directory is there, and whether it has a sidecar. */
  hasDirectory: boolean;
  hasSidecar: boolean;
  /** Whether the entry of its directory is known to be permanent. */
  hasEntry = false;
  /** Bytes before this position are in segment files. */
  written: Position;
  /** Segments written to since their last sync, by start. */
  readonly unsynced = new Set<Position>();
  /** Segments whose entry in the directory is permanent, by start. */
  readonly entered: Set<Position>;
  /** Segments whose file was found to have the length it should, by start. */
  readonly fitted = new Set<Position>();
  /** A process that ended may have replaced its sidecar without the directory's sync. */
  hasUnsyncedSidecar = false;
  /** Records of it are still being read: how long its segments should be is not known yet. */
  recovering = false;
  /** The last of the stream's file operations that run one after another; first, its predecessor's way out of the directory. */
  work: Promise<void> = Promise.resolve();
  /** Entries that wait for a large payload before them to reach its segment, `null` while there is none. */
  held: HeldEntry[] | null = null;
  /** Whether the stream layer has it. */
  handedOut = false;

  /** `sidecar` is what the disk says of the stream; `null` for a new one. */
  constructor(identity: StreamIdentity, directory: string, sidecar: Sidecar | null) {
    this.id = identity.id;
    this.name = identity.name;
    this.config = identity.config;
    this.directory = directory;
    this.state = sidecar?.state ?? new MutableState();
    this.segments = (sidecar?.segments ?? []).map(({ start, length, crc }) => ({
      start,
      length,
      crc,
      unchecked: { length, crc, checking: null },
    }));
    this.hasDirectory = sidecar !== null;
    this.hasSidecar = sidecar !== null;
    this.written = this.state.tail;
    this.reservedTail = this.state.tail;
    this.reservedSegmentStart = this.segments.at(-1)?.start ?? 0;
    this.entered = new Set(this.segments.map(({ start }) => start));
    this.lastBatch = sidecar?.batch ?? 0;
    this.persistedBatch = this.lastBatch;
  }

  get earliest(): Position {
    return this.segments[0]?.start ?? 0;
  }

  /** Whether its files hold all of its durable state. */
  get isPersisted(): boolean {
    return !this.hasUnsyncedSidecar && this.lastBatch === this.persistedBatch;
  }

  /** Whether its deletion was handed in and fails, because what was handed in before it failed. */
  get isDeletionVoid(): boolean {
    return !this.deleted && this.deletionGeneration >= 0 && this.deletionGeneration !== this.generation;
  }

  /** This stream, or the one before it that is still there when creations of the name have failed. */
  lastNotDeleted(): FileStream | null {
    return this.deleted ? (this.predecessor?.lastNotDeleted() ?? null) : this;
  }

  segmentStartBefore(position: Position): Position {
    return this.segmentAt(position - 1)?.start ?? this.earliest;
  }

  hasSegment(start: Position, length: number): boolean {
    if (this.segments.length === 0) return start === 0 && length === 0;
    const segment = this.segmentAt(start);
    return segment !== undefined && segment.start === start && length <= segment.length;
  }

  /** The segment that holds the byte at `position`, or would hold it at the tail. */
  segmentAt(position: Position): Segment | undefined {
    let low = 0;
    let high = this.segments.length - 1;
    const last = this.segments[high];
    if (last !== undefined && position >= last.start) return last;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.segments[middle]?.start ?? 0) <= position) low = middle;
      else high = middle - 1;
    }
    const found = this.segments[low];
    return found !== undefined && found.start <= position ? found : undefined;
  }

  /** Takes the place for the next `length` bytes; an append is never split between two segments. */
  reserve(length: number, segmentBytes: number): Place {
    const position = this.reservedTail;
    const used = position - this.reservedSegmentStart;
    if (used > 0 && used + length > segmentBytes) this.reservedSegmentStart = position;
    this.reservedTail = position + length;
    return { position, segmentStart: this.reservedSegmentStart };
  }

  /** What was reserved and not yet durable will never be; nor is the handle that its frame would have explained. */
  unreserve(): void {
    this.generation += 1;
    this.boundSequence = -1;
    this.fitted.clear();
    this.reservedTail = this.state.tail;
    this.reservedSegmentStart = this.segments.at(-1)?.start ?? 0;
  }

  /** `change` with `length` bytes in the segment at `segmentStart` is durable as part of `batch`. */
  advance(change: AppendRecord, length: number, segmentStart: Position, batch: number): void {
    if (length > 0) {
      const last = this.segments.at(-1);
      if (last === undefined || last.start !== segmentStart) this.segments.push({ start: segmentStart, length, crc: 0, unchecked: null });
      else last.length += length;
    }
    this.state.apply(change, length);
    this.lastBatch = batch;
  }

  /** A read was noted. */
  touch(atMs: number, batch: number): void {
    this.state.touchedAtMs = Math.max(this.state.touchedAtMs, atMs);
    this.lastBatch = batch;
  }
}

/** A stream that the engine gave out, as its own again. */
export function ownStream(stored: StoredStream): FileStream {
  if (stored instanceof FileStream) return stored;
  throw new TypeError("a stream of another storage engine");
}
