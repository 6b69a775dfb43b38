/**
 * What the stream layer asks of any storage engine. An engine knows positions, bytes and the small state that must be
 * durable together with them; it knows no HTTP and decides no protocol rule.
 */

/** A byte's place in a stream, counted from 0 at creation. At most 2^53 - 1. */
export type Position = number;

/** A value now or a little later: reads that memory can answer do not wait. */
export type MaybePromise<T> = T | Promise<T>;

/** Gets memory for `bytes` bytes, with anything in it. */
export type Allocate = (bytes: number) => Buffer;

/** From where a stream was forked. */
export interface ForkOrigin {
  /** The source's name and the id of its incarnation. */
  readonly name: string;
  readonly id: string;
  /** The stream shares the source's bytes before this position, and begins its own at it. */
  readonly point: Position;
  /** Where the source's earliest retained byte was, and where the segment of the byte before it began. */
  readonly earliest: { readonly position: Position; readonly segmentStart: Position };
  /** How the point was asked for: an offset token (`null` for the tail), and so many bytes or messages behind it. */
  readonly offset: string | null;
  readonly subOffset: number;
}

/** What is fixed when a stream is created. Times in milliseconds since 1970 UTC. */
export interface StreamConfig {
  readonly contentType: string;
  readonly createdAtMs: number;
  readonly ttlSeconds: number | null;
  readonly expiresAtMs: number | null;
  /** `null` for a stream that was not forked. */
  readonly forkedFrom: ForkOrigin | null;
}

/** One append of an idempotent producer. */
export interface ProducerStamp {
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
}

/** The last accepted append of a producer. */
export interface ProducerMark {
  readonly epoch: number;
  readonly seq: number;
  readonly atMs: number;
}

/** What appends change. An engine makes it durable together with the bytes. */
export interface StreamState {
  readonly tail: Position;
  readonly closed: boolean;
  /** `null` while it is open, and where nobody knows: a repair closes what it can't know all of. */
  readonly closedAtMs: number | null;
  /** The producer's append that closed the stream, if one did. */
  readonly closedBy: ProducerStamp | null;
  readonly lastSeq: string | null;
  /** By producer id, least recently active first; `null` until the first one. */
  readonly producers: ReadonlyMap<string, ProducerMark> | null;
  /** When the stream was last written or, as far as the engine was told, read. */
  readonly touchedAtMs: number;
}

/** One change of a stream: bytes, closure, producer and sequence become durable together or not at all. */
export interface AppendRecord {
  /** The bytes as they are served; empty when nothing is appended. The engine keeps them: never write to them again. */
  readonly payload: Buffer;
  /** How many messages the payload is: 1 in a stream of bytes, and where there is none. */
  readonly messages: number;
  readonly closes: boolean;
  readonly producer: ProducerStamp | null;
  readonly seq: string | null;
  readonly atMs: number;
}

/**
 * How a change ended: `durable`; or not there at all, because too much is open (`overloaded`), the disk is full
 * (`storage-full`), the engine has stopped accepting writes (`storage-unavailable`) or the stream's files can't be
 * written (`stream-damaged`).
 */
export type Settlement = "durable" | "overloaded" | "storage-full" | "storage-unavailable" | "stream-damaged";

/** Why the engine does not take a change now. `overloaded`: too much waits for the disk already. */
export type Rejection = "overloaded" | "storage-full" | "storage-unavailable" | "stream-damaged" | "tail-moved";

/** Told of every advance of a stream's durable state, whoever caused it, in order. */
export interface StreamObserver {
  /** `from..to` became durable (equal when only the state changed); `closed` is the state after it. */
  advanced(from: Position, to: Position, closed: boolean): void;
  /** All changes that became durable together have been reported. */
  settled(): void;
  /** The stream is gone, durably. */
  deleted(): void;
}

/** What would go first when the beginning of a stream is dropped. */
export interface OldestPart {
  /** Where it ends. */
  readonly end: Position;
  /** When its newest byte was appended. */
  readonly newestAtMs: number;
}

/** What became of a stream: `kept` is deleted, but forks still need its bytes; `gone` has none any more. */
export type Standing = "live" | "kept" | "gone";

/** A stream that the engine holds in memory. All of it shows only what is durable. */
export interface StoredStream {
  /** Unique to this incarnation of the name; letters and digits. */
  readonly id: string;
  readonly name: string;
  readonly config: StreamConfig;
  readonly state: StreamState;
  /** Where the earliest retained byte is. */
  readonly earliest: Position;
  /** `null` when nothing is retained. */
  readonly oldest: OldestPart | null;
  /** Whether the creation is durable yet. */
  readonly created: boolean;
  readonly standing: Standing;
  /** Streams that were forked from it and are not gone, and those on their way. */
  readonly forkCount: number;
  /** How many streams stand between it and one that was not forked. */
  readonly forkDepth: number;
  observer: StreamObserver | null;
  /** Start of the segment that holds the byte before `position`: the first part of its offset token. */
  segmentStartBefore(position: Position): Position;
  /**
   * The id of the incarnation that wrote the byte before `position`: before a fork's point its source's, or that one's
   * source's.
   */
  writerBefore(position: Position): string;
  /** Whether a segment begins at `start` and has at least `length` durable bytes. */
  hasSegment(start: Position, length: number): boolean;
  /** The end of the last segment with only bytes that were appended before `atMs`; `earliest` when there is none. */
  endOfOlderThan(atMs: number): Position;
}

/** A stream as `list` finds it, without loading it. */
export interface ListedStream {
  readonly name: string;
  readonly config: StreamConfig;
  readonly touchedAtMs: number;
  readonly tail: Position;
  readonly oldest: OldestPart | null;
}

/** Where a stream can be read again behind what is damaged; its tail, where nothing follows yet. */
export interface ReadablePlace {
  readonly stream: StoredStream;
  readonly position: Position;
}

/** A stream's files are not what was written: what they hold is never served. The engine has logged it. */
export class DamagedStreamError extends Error {
  override readonly name = "DamagedStreamError";
  readonly stream: string;
  readonly file: string;
  readonly problem: string;
  /** The first byte of the file that may be meant, `null` where it is about the whole file. */
  readonly offset: number | null;
  /** `null` where nothing of the stream can be read. */
  readonly readable: ReadablePlace | null;

  constructor(
    stream: string,
    file: string,
    problem: string,
    offset: number | null = null,
    readable: ReadablePlace | null = null,
  ) {
    super(`stream ${JSON.stringify(stream)}: ${file}${offset === null ? "" : ` at byte ${offset}`}: ${problem}`);
    this.stream = stream;
    this.file = file;
    this.problem = problem;
    this.offset = offset;
    this.readable = readable;
  }
}

/** The stream was deleted while it was read: what its reader had left to read is gone. */
export class DeletedStreamError extends Error {
  override readonly name = "DeletedStreamError";
}

/** What was to be read is before the earliest retained byte: retention has dropped it. */
export class TrimmedStreamError extends Error {
  override readonly name = "TrimmedStreamError";
  readonly stream: StoredStream;

  constructor(stream: StoredStream) {
    super(`what was to be read of the stream ${JSON.stringify(stream.name)} is no longer kept`);
    this.stream = stream;
  }
}

/** Something can't be read now, because too many files are open or it changes too fast; a little later it can. */
export class StorageBusyError extends Error {
  override readonly name = "StorageBusyError";
}

/** Whether the engine takes writes; `reason` says why not. */
export interface StorageHealth {
  readonly writable: boolean;
  readonly reason: string | null;
  /** Streams in which damage was found since the start, and that were not deleted; of very many, those found last. */
  readonly damagedStreams: number;
}

/**
 * The engine. Methods that return nothing report through `settle`, in the order in which they were called per stream.
 */
export interface Storage {
  /** Whether it can be told at once that there is no stream of this name; false also where `load` has to look. */
  lacks(name: string): boolean;
  /** The stream of this name, or `null`. Throws {@link DamagedStreamError}. */
  load(name: string): Promise<StoredStream | null>;
  /**
   * Makes a stream. The name must be free: `load` has found nothing, or the deletion of what had it is durable; throws
   * where it is not. The source of a fork is a live stream that was loaded; the fork and the source's knowledge of it
   * become durable together.
   */
  create(
    name: string,
    config: StreamConfig,
    initial: AppendRecord,
    settle: (how: Settlement) => void,
  ): StoredStream | Rejection;
  /** Appends `record` if the stream's tail, with all that was handed in before, is `expectedTail`. */
  append(
    stream: StoredStream,
    record: AppendRecord,
    expectedTail: Position,
    settle: (how: Settlement) => void,
  ): Rejection | null;
  /**
   * Calls `settle` when all that was handed in for the stream before is settled; as a failure where that leaves the
   * stream with another tail than `expectedTail`, on which the caller has decided.
   */
  barrier(stream: StoredStream, settle: (how: Settlement) => void, expectedTail?: Position): void;
  /** Notes a read, so that a sliding lifetime survives a restart. False when it is not taken now. */
  touch(stream: StoredStream, atMs: number): boolean;
  /**
   * Deletes a stream; the name is free when this is durable. One with forks is `kept` until the last is gone, and then
   * goes by itself.
   */
  delete(stream: StoredStream, settle: (how: Settlement) => void): Rejection | null;
  /** Deletes a stream that `load` can't give out because it is damaged; the name is free when this is durable. */
  deleteDamaged(name: string): Promise<Settlement | Rejection>;
  /**
   * Drops whole segments that end at or before `before`, oldest first; later, when it is not taken now. Nothing goes
   * that a fork needs.
   */
  trim(stream: StoredStream, before: Position): void;
  /**
   * Durable bytes from `from` on: at least one, at most `maxBytes`, fewer where that is cheaper; what ends early ends
   * where an append ended. `from` is below the tail. Throws {@link DamagedStreamError},
   * {@link DeletedStreamError}, {@link TrimmedStreamError} and {@link StorageBusyError}. What has to come from the disk
   * comes to memory from `allocate`, which the engine does not keep.
   */
  read(stream: StoredStream, from: Position, maxBytes: number, allocate?: Allocate): MaybePromise<Buffer>;
  /**
   * Where a read from `from` of about `maxBytes` ends that is not to cut an append in two: at the last end of an append
   * that it reaches, or at the first behind `from` where that is farther. `null` where no more is known than that it
   * does not reach the tail. `from + maxBytes` is before the tail. Throws what `read` throws.
   */
  endOfRead(stream: StoredStream, from: Position, maxBytes: number): MaybePromise<Position | null>;
  /** Every stream that was not deleted, in no order, slowly enough to disturb nobody. */
  list(): AsyncIterable<ListedStream>;
  /** Makes all that is durable in the stream permanent in its own files, so that it can be released. */
  persist(stream: StoredStream): Promise<void>;
  /** Lets go of a stream from memory at once; false when it holds something that `persist` has not written. */
  release(stream: StoredStream): boolean;
  health(): StorageHealth;
  /** Makes everything permanent and gives the directory back. */
  close(): Promise<void>;
}
