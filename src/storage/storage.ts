/**
 * The interface between the stream layer and a storage engine. An engine knows positions, bytes, and the small state
 * that must be durable together with them. It knows no HTTP and decides no protocol rule.
 */

import type { EventEmitter } from "node:events";
import type { NameRange, NameSource } from "../protocol/names/name-range.js";
import type { StorageFigures } from "./figures.js";

/** A byte's place in a stream, counted from 0 at creation. At most 2^53 - 1. */
export type Position = number;

/** A value now or a little later: reads that memory can answer do not wait. */
export type MaybePromise<T> = T | Promise<T>;

/** Allocates memory for `bytes` bytes; its contents may be anything. */
export type Allocate = (bytes: number) => Buffer;

/** The place where a stream was forked from another. */
export interface ForkOrigin {
  /** The source's name and the id of its incarnation. */
  readonly name: string;
  readonly id: string;
  /** The stream shares the source's bytes before this position, and begins its own at it. */
  readonly point: Position;
  /** Where the source's earliest retained byte was, and where the segment of the byte before it began. */
  readonly earliest: { readonly position: Position; readonly segmentStart: Position };
  /** How the point was requested: an offset token (`null` for the tail), and the bytes or messages after it. */
  readonly offset: string | null;
  readonly subOffset: number;
}

/** The configuration of a stream, fixed at its creation. Times in milliseconds since 1970 UTC. */
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

/** The state of a stream that appends change. An engine makes it durable together with the bytes. */
export interface StreamState {
  readonly tail: Position;
  readonly closed: boolean;
  /** `null` while it is open, and where the time is unknown, as after a repair closed the stream. */
  readonly closedAtMs: number | null;
  /** The producer's append that closed the stream, if one did. */
  readonly closedBy: ProducerStamp | null;
  readonly lastSeq: string | null;
  /** By producer id, least recently active first; `null` until the first one. */
  readonly producers: ReadonlyMap<string, ProducerMark> | null;
  /** When the stream was last appended to, or read as far as `touch` noted it. */
  readonly touchedAtMs: number;
}

/** One change of a stream: bytes, closure, producer and sequence become durable together or not at all. */
export interface AppendRecord {
  /** The bytes as they are served; empty when nothing is appended. The engine keeps them: never write to them again. */
  readonly payload: Buffer;
  /** How many messages the payload holds: 1 in a stream of bytes, and where it is empty. */
  readonly messages: number;
  readonly closes: boolean;
  readonly producer: ProducerStamp | null;
  readonly seq: string | null;
  readonly atMs: number;
}

/**
 * How a change ended: `durable`, or without any effect because too many files are open (`overloaded`), the disk is full
 * (`storage-full`), the engine has stopped accepting writes (`storage-unavailable`) or the stream's files can't be
 * written (`stream-damaged`). Where several servers write there are more: another has changed the stream first
 * (`tail-moved`: its state is fresh now, decide again), or made one of this name (`exists`, only for a creation), and
 * this had no effect; or nobody can say yet whether it is durable (`unknown`).
 */
export type Settlement =
  | "durable"
  | "overloaded"
  | "storage-full"
  | "storage-unavailable"
  | "stream-damaged"
  | "tail-moved"
  | "exists"
  | "unknown";

/**
 * Why a change is refused. `overloaded`: too much waits for the disk; `tail-moved`: the tail is not as expected;
 * `body-too-large`: the engine takes no record of this length.
 */
export type Rejection =
  "overloaded" | "storage-full" | "storage-unavailable" | "stream-damaged" | "tail-moved" | "body-too-large";

/** Why a damaged stream is not deleted. `needed`: forks of it may need what is left of it. */
export type DamagedRejection = Rejection | "needed";

/** Observes every advance of a stream's durable state, in order. */
export interface StreamObserver {
  /** `from..to` became durable (equal when only the state changed); `closed` is the state after it. */
  advanced(from: Position, to: Position, closed: boolean): void;
  /** All changes that became durable together have been reported. */
  settled(): void;
  /** The stream is gone, durably. */
  deleted(): void;
}

/** How much of each stream is kept; `Infinity` for all. */
export interface RetentionLimits {
  /** At least this many of the newest bytes. */
  readonly maxBytes: number;
  /** Everything that was appended within this time. */
  readonly maxAgeMs: number;
}

/**
 * Whether a stream lives: `kept` is deleted, but its forks need its bytes; `gone` has no bytes any more. Another server
 * may have deleted it.
 */
export type Standing = "live" | "kept" | "gone";

/** A stream that the engine holds in memory. It shows only what is durable. */
export interface StoredStream {
  /** Unique to this incarnation of the name; letters and digits. */
  readonly id: string;
  readonly name: string;
  readonly config: StreamConfig;
  readonly state: StreamState;
  /** The position of the earliest retained byte. */
  readonly earliest: Position;
  /** When the newest of its own bytes that are kept was appended; `null` where none are. */
  readonly newestAtMs: number | null;
  /** Whether the creation is durable yet. */
  readonly created: boolean;
  readonly standing: Standing;
  /** How many forks it has that are not gone, with those that are being created. */
  readonly forkCount: number;
  /** The length of its chain of sources: 0 for a stream that was not forked. */
  readonly forkDepth: number;
  observer: StreamObserver | null;
  /** Whether something is known to need it in memory, as its observer or a fork in memory does: see `release`. */
  readonly isInUse: boolean;
  /** Start of the part that holds the byte before `position`: the first half of its offset token. */
  partStartBefore(position: Position): Position;
  /**
   * Who wrote the byte before `position`: this incarnation, before a fork's point its source or one further up, and
   * after a restore each of them as another.
   */
  writerBefore(position: Position): string;
  /** Whether a part begins at `start` and has at least `length` durable bytes. */
  hasPart(start: Position, length: number): boolean;
}

/** A stream as `list` finds it, without loading it. */
export interface ListedStream {
  readonly name: string;
  readonly config: StreamConfig;
  readonly touchedAtMs: number;
  readonly tail: Position;
  /** Whether `Storage.trim` would drop something of it; a fork's source may have to be looked at for that. */
  isExcess(limits: RetentionLimits, nowMs: number): MaybePromise<boolean>;
}

/** A place found by the messages before it. */
export interface FoundPlace {
  /** Where an append begins. */
  readonly position: Position;
  /** How many of the append's messages come before the place. */
  readonly skip: number;
}

/** The first position after damage where a stream can be read again; its tail, where nothing follows yet. */
export interface ReadablePlace {
  readonly stream: StoredStream;
  readonly position: Position;
}

/** Thrown where a stream's files are damaged. Damaged bytes are never served, and the engine has logged the place. */
export class DamagedStreamError extends Error {
  override readonly name = "DamagedStreamError";
  readonly stream: string;
  readonly file: string;
  readonly problem: string;
  /** The first byte of the file that may be damaged; `null` where the whole file is. */
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

/** Thrown where a stream was deleted while it was read: the rest is gone. */
export class DeletedStreamError extends Error {
  override readonly name = "DeletedStreamError";
}

/** Thrown where the bytes to read are before the earliest retained byte: retention has dropped them. */
export class TrimmedStreamError extends Error {
  override readonly name = "TrimmedStreamError";
  readonly stream: StoredStream;

  constructor(stream: StoredStream) {
    super(`what was to be read of the stream ${JSON.stringify(stream.name)} is no longer kept`);
    this.stream = stream;
  }
}

/**
 * Thrown where a read can't be done now, because too many files are open, too many reads wait, or the stream is trimmed
 * too fast. A retry succeeds a little later.
 */
export class StorageBusyError extends Error {
  override readonly name: string = "StorageBusyError";
}

/** Thrown where no majority of a cluster's servers answers a read. A retry succeeds once one is there again. */
export class NoMajorityError extends StorageBusyError {
  override readonly name = "NoMajorityError";
}

/** What becomes of streams, once it is durable, in the order in which it does. */
export interface StreamEvents {
  created: [stream: StoredStream];
  closed: [stream: StoredStream];
  deleted: [name: string];
  /** Of some streams it may not have been told what became of them: whoever follows has to list again. */
  missed: [];
}

/** Names that patterns match. */
export interface MatchingNames {
  /**
   * The first names of `source` in a range, at most `count`, as of {@link StreamList.names}; `null` once they are no
   * longer kept. `source.pattern` is one of those asked for, and `source.range` is where its names lie.
   */
  slice(source: NameSource, range: NameRange, count: number): readonly string[] | null;
}

/** The streams of an engine by name. */
export interface StreamList {
  readonly events: EventEmitter<StreamEvents>;
  /** Whether other servers make and delete these streams as well. */
  readonly isShared: boolean;
  /**
   * The first names of a range, at most `count`, in the order of their UTF-16 code units: of all streams, and perhaps
   * of some that are no more. Rejects when the disk fails.
   */
  names(range: NameRange, count: number): Promise<readonly string[]>;
  /**
   * The names that these patterns match, `null` for all, without a look at any other, so that no time tells of those.
   * `null` where the engine has no index for them. Rejects when the disk fails.
   */
  matching(patterns: readonly (string | null)[]): Promise<MatchingNames | null>;
  /**
   * The stream of this name as it is now, to look at: one that is not in memory does not come there. `null` where none
   * lives, or its files are damaged. Throws {@link StorageBusyError}.
   */
  look(name: string): Promise<StoredStream | null>;
}

/** Whether the engine accepts writes; `reason` says why not, or what else is wrong where it does. */
export interface StorageHealth {
  readonly writable: boolean;
  readonly reason: string | null;
  /** Damaged streams found since the start and not deleted. Of very many, only those found last count. */
  readonly damagedStreams: number;
}

/** A storage engine. Changes report through `settle`, for each stream in the order in which they were submitted. */
export interface Storage {
  readonly streamList: StreamList;
  /** Whether an earlier state was put in place: a token of a place that is not there may be of what came after it. */
  readonly isRestored: boolean;
  /** Whether it is certain, without the disk, that no stream has this name; false also where `load` has to look. */
  lacks(name: string): boolean;
  /** The stream of this name, or `null`. Throws {@link DamagedStreamError} and {@link StorageBusyError}. */
  load(name: string): Promise<StoredStream | null>;
  /**
   * Makes a stream's state no older than any change that was acknowledged before this call, whichever server made it;
   * at once where no other can. It may find that the stream is gone. Throws {@link StorageBusyError} where nobody can
   * tell now.
   */
  refresh(stream: StoredStream): MaybePromise<void>;
  /**
   * Creates a stream. The name must be free: `load` found nothing, or the deletion of its last stream is durable.
   * Throws where it is not. The source of a fork must be live and loaded; the fork, and the entry for it in its source,
   * become durable together.
   */
  create(
    name: string,
    config: StreamConfig,
    initial: AppendRecord,
    settle: (how: Settlement) => void,
  ): StoredStream | Rejection;
  /** Appends `record` if the stream's tail, after everything submitted before, is `expectedTail`. */
  append(
    stream: StoredStream,
    record: AppendRecord,
    expectedTail: Position,
    settle: (how: Settlement) => void,
  ): Rejection | null;
  /**
   * Calls `settle` when everything submitted for the stream before has settled; with a failure where the tail is then
   * not `expectedTail`, on which the caller's decision was based.
   */
  barrier(stream: StoredStream, settle: (how: Settlement) => void, expectedTail?: Position): void;
  /**
   * For a `kept` stream that is about to be removed, as the last of its forks is gone, or is about to be: resolves when
   * that has settled. `null` where it stays.
   */
  whenFreed(stream: StoredStream): Promise<void> | null;
  /** Notes a read, so that a sliding TTL survives a restart. False when the engine does not accept the note now. */
  touch(stream: StoredStream, atMs: number): boolean;
  /**
   * Deletes a stream; the name is free when this is durable. A stream with forks is `kept` until the last fork is gone,
   * and is then removed by the engine.
   */
  delete(stream: StoredStream, settle: (how: Settlement) => void): Rejection | null;
  /** Deletes a stream that can't be loaded because it is damaged; the name is free when this is durable. */
  deleteDamaged(name: string): Promise<Settlement | DamagedRejection>;
  /**
   * Drops whole parts of a stream, oldest first, as long as `limits` keep no byte of them, now or later. Keeps what a
   * fork needs.
   */
  trim(stream: StoredStream, limits: RetentionLimits, nowMs: number): void;
  /**
   * Reads durable bytes from `from` on, which must be below the tail: at least one, at most `maxBytes`, fewer where
   * that is cheaper. A shorter read ends where an append ended. Throws {@link DamagedStreamError}, {@link
   * DeletedStreamError}, {@link TrimmedStreamError} and {@link StorageBusyError}. Bytes from the disk are read into
   * memory from `allocate`, which the engine does not keep.
   */
  read(stream: StoredStream, from: Position, maxBytes: number, allocate?: Allocate): MaybePromise<Buffer>;
  /**
   * Where a read of about `maxBytes` from `from` should end, so that it cuts no append in two: at the last end of an
   * append within `maxBytes`, or else at the first one after `from`. `null` where the engine knows only that this is
   * before the tail. `from + maxBytes` must be before the tail. Throws what `read` throws.
   */
  endOfRead(stream: StoredStream, from: Position, maxBytes: number): MaybePromise<Position | null>;
  /**
   * Where the last `count` messages begin (in a stream of bytes: appends), or the stream does. `countIn` counts those
   * between two positions within one append, where a fork was made, and answers `null` to give up: so does this then.
   * Throws {@link StorageBusyError}.
   */
  placeOfLast(
    stream: StoredStream,
    count: number,
    countIn: (from: Position, to: Position) => MaybePromise<number | null>,
  ): Promise<FoundPlace | null>;
  /** Where the first append begins that was made at `atMs` or later; the tail where none was. Throws the same. */
  placeSince(stream: StoredStream, atMs: number): Promise<Position>;
  /**
   * Lists every stream that was not deleted, in no particular order, slowly enough not to disturb requests; in a
   * cluster none where another server does that.
   */
  list(): AsyncIterable<ListedStream>;
  /** Writes everything durable of the stream to its own files, so that it can be released. */
  persist(stream: StoredStream): Promise<void>;
  /**
   * Removes a stream from memory; false when it holds something that `persist` has not written, or something on its
   * way, a fork in memory or an observer needs it.
   */
  release(stream: StoredStream): boolean;
  health(): StorageHealth;
  /** Figures for whoever watches the engine; costs next to nothing. */
  figures(): StorageFigures;
  /** Writes everything to the streams' own files and releases the directory. */
  close(): Promise<void>;
}
