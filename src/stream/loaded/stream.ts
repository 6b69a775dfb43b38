import { formatOf, type StreamFormat } from "../../protocol/content-type.js";
import { checkOf, type ParsedOffset, type TokenPlace } from "../../protocol/offset.js";
import type { Clock } from "../../ops/clock.js";
import {
  DamagedStreamError,
  TrimmedStreamError,
  type Allocate,
  type AppendRecord,
  type MaybePromise,
  type Position,
  type Rejection,
  type Settlement,
  type Storage,
  type StoredStream,
  type StreamConfig,
  type StreamObserver,
} from "../../storage/storage.js";
import { fromBeginning } from "../rules/beginning.js";
import { chain } from "./chain.js";
import { readChunk, type Chunk } from "./chunk.js";
import type { AppendCommand, AppendHead } from "../rules/command.js";
import { decideAppend, holdsData, refuseByHead } from "../rules/decide.js";
import { deadlineOf, slides, type TtlMode } from "../rules/expiry.js";
import { LiveFeed, type Advance } from "./live.js";
import type { LoadedProducers } from "./loaded-producers.js";
import { isTokenOf, offsetIn } from "../rules/offset-tokens.js";
import {
  refuse,
  TOO_MANY_PRODUCERS,
  type AnswerAppend,
  type AppendOutcome,
  type ProducerEcho,
  type RefusalCode,
  type Refused,
} from "../rules/outcome.js";
import { ReservedState } from "./reserved.js";
import { trimExcess, type RetentionLimits } from "./retention.js";
import { SlidingTtl } from "./sliding-ttl.js";

export type { Chunk } from "./chunk.js";
export {
  DamagedStreamError,
  DeletedStreamError,
  StorageBusyError,
  TrimmedStreamError,
  type Allocate,
  type MaybePromise,
  type Position,
} from "../../storage/storage.js";

/** Where a read begins: at a position, or where the stream does, wherever that is by the time it is read. */
export type ReadFrom = Position | "start";

/**
 * Where an incarnation of a name stands. `creating`, `deleting` and `keeping` are handed to storage and not durable
 * yet; `kept` is deleted, but its forks keep its bytes and its name.
 */
export type StreamPhase = "creating" | "live" | "deleting" | "keeping" | "kept" | "gone";

/** What all streams of a server share. */
export interface StreamContext {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly ttlMode: TtlMode;
  readonly retention: RetentionLimits;
  readonly producers: LoadedProducers<Stream>;
  /** Whether one more producer may be remembered by a stream in memory. */
  readonly hasRoomForProducer: () => boolean;
}

/** That of streams that were deleted before they came into memory. One for all: most have none. */
const NO_DELETION = Promise.resolve(null);

/** One stream in memory: decides appends, reads chunks, wakes live readers. */
export class Stream implements StreamObserver {
  readonly stored: StoredStream;
  phase: StreamPhase;
  /** Whether somebody looked at it since the registry last did. */
  recentlyUsed = true;
  /** How its last deletion ends: with `null` when it is durable, else with why it failed. */
  deletion: Promise<Refused | null> = NO_DELETION;
  /** Its producers, as far as they are counted among those of all. */
  countedProducers = 0;
  readonly #context: StreamContext;
  readonly #reserved: ReservedState;
  readonly #format: StreamFormat;
  /** Where its use puts its end off; and else when it ends, whatever happens. */
  readonly #ttl: SlidingTtl | null;
  readonly #fixedDeadlineMs: number;
  /** What its tokens say of it; -1 until the first. */
  #check = -1;
  #feed: LiveFeed | null = null;
  #users = 0;

  /** `initial` is the creation that was handed to storage, `null` for a stream that storage had already. */
  constructor(context: StreamContext, stored: StoredStream, initial: AppendRecord | null) {
    this.#context = context;
    this.stored = stored;
    const { config } = stored;
    this.#format = formatOf(config.contentType);
    this.#ttl = slides(config, context.ttlMode) ? new SlidingTtl(context, stored, initial) : null;
    this.#fixedDeadlineMs = deadlineOf(config, 0, "fixed");
    this.phase = initial !== null ? "creating" : stored.standing === "kept" ? "kept" : "live";
    this.#reserved = new ReservedState(stored.state, initial);
  }

  get id(): string {
    return this.stored.id;
  }

  get name(): string {
    return this.stored.name;
  }

  get isJson(): boolean {
    return this.#format.isJson;
  }

  get config(): StreamConfig {
    return this.stored.config;
  }

  /** End of the durable bytes. */
  get tail(): Position {
    return this.stored.state.tail;
  }

  /** Whether the stream is durably closed. */
  get closed(): boolean {
    return this.stored.state.closed;
  }

  /** Producers that it durably remembers. */
  get producerCount(): number {
    return this.stored.state.producers?.size ?? 0;
  }

  /** Closure as it will be when everything handed to storage is durable. */
  get reservedClosed(): boolean {
    return this.#reserved.closed;
  }

  /** The tail as it will be when everything handed to storage is durable. */
  get reservedTail(): Position {
    return this.#reserved.tail;
  }

  get deadlineMs(): number {
    return this.#ttl === null ? this.#fixedDeadlineMs : this.#ttl.deadlineMs;
  }

  isExpired(nowMs: number): boolean {
    return this.deadlineMs <= nowMs;
  }

  /** Milliseconds until the stream expires if nobody touches it, `null` when it does not. */
  remainingMs(nowMs: number): number | null {
    const deadlineMs = this.deadlineMs;
    return deadlineMs === Infinity ? null : Math.max(0, deadlineMs - nowMs);
  }

  /**
   * Restarts a sliding TTL: somebody reads the stream. The read may be answered when this is over, so that no crash can
   * take back what it did for the stream's life.
   */
  touch(): MaybePromise<void> {
    if (this.#ttl !== null) return this.#ttl.touch();
  }

  /** Whether the name stands for this stream, as far as has been decided. */
  get isCurrent(): boolean {
    return this.phase === "creating" || this.phase === "live";
  }

  /** Whether nothing is on its way to storage. */
  get #isSettled(): boolean {
    return this.#reserved.pending === 0 && (this.phase === "live" || this.phase === "kept");
  }

  /** Whether the registry may let go of the stream. */
  get idle(): boolean {
    return this.#users === 0 && this.#isSettled && (this.#ttl === null || this.#ttl.isNoted);
  }

  /**
   * Whether the registry may let go of the stream now. Where storage has yet to know of its use for that, it is told.
   */
  readyToLeave(): boolean {
    if (this.phase === "live" && this.#users === 0) this.#ttl?.note();
    return this.idle;
  }

  /** Keeps the stream in memory until `release`; for whoever holds it across an await. */
  retain(): void {
    this.#users += 1;
  }

  release(): void {
    this.#users -= 1;
    if (this.#users > 0 || this.#feed === null) return;
    this.#feed = null;
    this.stored.observer = null;
  }

  /**
   * Reports each advance, and the end when the stream is deleted or has expired, and keeps the stream in memory, until
   * the function that it returns is called.
   */
  follow(onAdvance: (advance: Advance) => void, onEnd: () => void): () => void {
    this.retain();
    const feed = (this.#feed ??= new LiveFeed());
    this.stored.observer = this;
    feed.on("advance", onAdvance).on("end", onEnd);
    return () => {
      feed.off("advance", onAdvance).off("end", onEnd);
      this.release();
    };
  }

  advanced(from: Position, to: Position, closed: boolean): void {
    this.#feed?.note(from, to, closed);
  }

  settled(): void {
    this.#feed?.flush();
  }

  deleted(): void {
    this.#feed?.emit("end");
  }

  /**
   * Appends, closes, or both; `answer` gets the outcome when it is durable (docs/api.md, Append). A promise for each
   * append would cost more than to store it; one comes only where something else than storage has to be waited for.
   */
  append(command: AppendCommand, answer: AnswerAppend): MaybePromise<void> {
    const nowMs = this.#context.clock.nowMs();
    const decision = decideAppend(this.#reserved, this.#format, command, nowMs);
    const hasData = holdsData(command.body);
    switch (decision.kind) {
      case "accept":
        return this.#store(decision.record, hasData, answer);
      case "settled":
        return chain(this.#answerRepeated(hasData, decision.producer), answer);
      case "refused":
        return chain(this.#refuseWhenDurable(decision), answer);
    }
  }

  /**
   * Why an append with data is refused for its head alone, once that is durable; `null` when it takes the data to tell.
   */
  refusalOf(head: AppendHead): MaybePromise<Refused | null> {
    const refusal = refuseByHead(this.#reserved, this.#format, head, this.#context.clock.nowMs());
    return refusal === null ? null : this.#refuseWhenDurable(refusal);
  }

  #refuseWhenDurable(refusal: Refused): MaybePromise<Refused> {
    const { tail } = this.#reserved;
    return this.whenDurable(() =>
      refusal.closed === true ? { ...refusal, nextOffset: this.offsetAt(tail) } : refusal,
    );
  }

  /** The request asks for what was done before: nothing changes but the stream's life. */
  #answerRepeated(hasData: boolean, producer: ProducerEcho | null): MaybePromise<AppendOutcome> {
    // First of all it is tied to what it cites: that may fail while the note of the touch is on its way.
    const answer = this.#answerWhenDurable((tail, closed) => this.#appended(tail, closed, true, hasData, producer));
    const touched = this.touch();
    return touched instanceof Promise ? touched.then(() => answer) : answer;
  }

  #store(record: AppendRecord, hasData: boolean, answer: AnswerAppend): void {
    const { producer } = record;
    if (producer !== null && this.#reserved.markOf(producer.id) === undefined && !this.#context.hasRoomForProducer())
      return answer(TOO_MANY_PRODUCERS);
    const from = this.#reserved.tail;
    let generation = 0;
    const rejection = this.#context.storage.append(this.stored, record, from, (how) => {
      this.#reserved.settle(generation, how === "durable");
      this.#ttl?.end(record.atMs, how);
      if (how !== "durable") return answer(refuse(how));
      if (producer !== null && this.phase !== "gone") this.#context.producers.note(this);
      this.trimExcess();
      answer(this.#appended(from + record.payload.length, this.closed, false, hasData, producer));
    });
    if (rejection !== null) return answer(refuseRejected(rejection));
    generation = this.#reserved.reserve(record);
    this.#ttl?.begin(record.atMs);
  }

  /** Drops what retention does not keep. */
  trimExcess(): void {
    const { storage, retention, clock } = this.#context;
    if (this.phase === "live") trimExcess(storage, this.stored, retention, clock);
  }

  #appended(
    tail: Position,
    closed: boolean,
    duplicate: boolean,
    hasData: boolean,
    producer: ProducerEcho | null,
  ): AppendOutcome {
    return { kind: "appended", duplicate, hasData, nextOffset: this.offsetAt(tail), closed, producer };
  }

  /** Answers from the reserved state, but not before that state is durable. */
  #answerWhenDurable(answer: (tail: Position, closed: boolean) => AppendOutcome): MaybePromise<AppendOutcome> {
    const { tail, closed } = this.#reserved;
    return this.whenDurable(() => answer(tail, closed));
  }

  /** Makes an answer once all that was handed in before is durable; a refusal when that failed. */
  whenDurable<T>(answer: () => T): MaybePromise<T | Refused> {
    if (this.#isSettled) return answer();
    const { tail } = this.#reserved;
    return new Promise((resolve) => {
      this.#context.storage.barrier(this.stored, (how) => resolve(how === "durable" ? answer() : refuse(how)), tail);
    });
  }

  /** Storage has settled the creation. */
  creationSettled(how: Settlement): void {
    this.#reserved.settle(0, how === "durable");
    this.#ttl?.end(this.config.createdAtMs, how);
    if (how !== "durable") this.phase = "gone";
    else if (this.phase === "creating") this.phase = "live";
  }

  /** The token of a position: a position has one for ever. */
  offsetAt(position: Position): string {
    return offsetIn(this.stored, position, this.#ownCheck);
  }

  /**
   * Whether the stream could have given out a token; one that it could not have is of another incarnation of its name.
   */
  isOwnToken(place: TokenPlace): boolean {
    return isTokenOf(this.stored, place, this.#ownCheck);
  }

  get #ownCheck(): number {
    if (this.#check < 0) this.#check = checkOf(this.id);
    return this.#check;
  }

  /** The token of the earliest byte that is kept. */
  get earliestOffset(): string {
    return this.offsetAt(this.stored.earliest);
  }

  /** Where reading begins for an offset token, or why it can't (docs/api.md, Read). */
  locate(offset: ParsedOffset): MaybePromise<ReadFrom | Refused> {
    switch (offset.kind) {
      case "start":
        return "start";
      case "now":
        return this.tail;
      case "at":
        return this.#locateAt(offset);
    }
  }

  #locateAt(place: TokenPlace): MaybePromise<Position | Refused> {
    const { partStart, byteInPart } = place;
    const position = partStart + byteInPart;
    const { earliest } = this.stored;
    if (!this.isOwnToken(place)) {
      return refuse("offset-gone", {
        earliestOffset: this.earliestOffset,
        detail: "The offset is of a stream that had this name before, or of one that this stream was forked from.",
      });
    }
    if (position < earliest) return refuse("offset-gone", { earliestOffset: this.earliestOffset });
    if (!this.stored.hasSegment(partStart, byteInPart)) {
      return refuse("invalid-offset", { detail: "The offset was not given out by this stream." });
    }
    if (!this.isJson || byteInPart === 0 || position === this.tail || position === earliest) return position;
    const before = this.#context.storage.read(this.stored, position - 1, 1);
    if (Buffer.isBuffer(before)) return atMessageBoundary(before, position);
    return before.then(
      (byte) => atMessageBoundary(byte, position),
      (error: unknown) => {
        // The stream begins later meanwhile: perhaps at this very place.
        if (error instanceof TrimmedStreamError && position <= this.stored.earliest) return this.#locateAt(place);
        // The message before is damaged, and ends here.
        if (error instanceof DamagedStreamError && error.readable?.position === position) return position;
        throw error;
      },
    );
  }

  /**
   * Reads durable bytes from `from` on, about `maxBytes` of them: up to where an append or a JSON message ended. One
   * that is longer comes whole; of bytes only up to `longestBytes`, and cut at `maxBytes` above that. Most that comes
   * from the disk comes to memory from `allocate`, which nobody else keeps. Throws DamagedStreamError,
   * DeletedStreamError, StorageBusyError and, unless it is from the start, TrimmedStreamError.
   */
  read(from: ReadFrom, maxBytes: number, allocate?: Allocate, longestBytes = Infinity): MaybePromise<Chunk> {
    const request = { maxBytes, longestBytes, allocate };
    if (from !== "start") return readChunk(this.#context.storage, this, from, request);
    return fromBeginning(this, (earliest) => readChunk(this.#context.storage, this, earliest, request));
  }
}

function atMessageBoundary(byteBefore: Buffer, position: Position): Position | Refused {
  const NEWLINE = 10;
  return byteBefore[0] === NEWLINE ? position : refuse("invalid-offset", { detail: "The offset is inside a message." });
}

/** The refusal for a change that storage does not take now. */
export function refuseRejected(rejection: Rejection): Refused {
  const code: RefusalCode = rejection === "tail-moved" ? "overloaded" : rejection;
  return refuse(code);
}
