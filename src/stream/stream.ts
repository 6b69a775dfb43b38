import { formatOf, type StreamFormat } from "../protocol/content-type.js";
import { wholeMessagesLength } from "../protocol/json-frame.js";
import { formatOffset, type ParsedOffset } from "../protocol/offset.js";
import type { Clock } from "../ops/clock.js";
import { DamagedStreamError, TrimmedStreamError, type Allocate, type AppendRecord, type MaybePromise, type Position, type Rejection, type Settlement, type Storage, type StoredStream, type StreamConfig, type StreamObserver } from "../storage/storage.js";
import { chain } from "./chain.js";
import type { AppendCommand } from "./command.js";
import { decideAppend } from "./decide.js";
import { deadlineOf, slides, type TtlMode } from "./expiry.js";
import { LiveFeed } from "./live.js";
import { refuse, type AnswerAppend, type AppendOutcome, type ProducerEcho, type RefusalCode, type Refused } from "./outcome.js";
import { ReservedState } from "./reserved.js";
import { trimExcess, type RetentionLimits } from "./retention.js";
import { SlidingTtl } from "./sliding-ttl.js";

export { DamagedStreamError, DeletedStreamError, StorageBusyError, TrimmedStreamError, type Allocate, type MaybePromise, type Position } from "../storage/storage.js";

/** A piece of a stream, ready to serve: `bytes` is `from..to` as stored. JSON streams end at a whole message. */
export interface Chunk {
  readonly kind: "chunk";
  readonly from: Position;
  readonly to: Position;
  readonly bytes: Buffer;
  /** Whether `to` was the tail when the chunk was made. */
  readonly upToDate: boolean;
  /** Whether the stream is closed and `to` is its end. */
  readonly closed: boolean;
}

/**
 * Where an incarnation of a name stands. `creating`, `deleting` and `keeping` are handed to storage and not durable yet;
 * `kept` is deleted, but its forks keep its bytes and its name.
 */
export type StreamPhase = "creating" | "live" | "deleting" | "keeping" | "kept" | "gone";

/** What all streams of a server share. */
export interface StreamContext {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly ttlMode: TtlMode;
  readonly retention: RetentionLimits;
}

const NO_BYTES = Buffer.alloc(0);

/** One stream in memory: decides appends, reads chunks, wakes live readers. */
export class Stream implements StreamObserver {
  readonly stored: StoredStream;
  phase: StreamPhase;
  /** Whether somebody looked at it since the registry last did. */
  recentlyUsed = true;
  /** What the name stood for before, until the creation is durable. */
  predecessor: Stream | null = null;
  readonly #context: StreamContext;
  readonly #reserved: ReservedState;
  readonly #format: StreamFormat;
  /** Where its use puts its end off; and else when it ends, whatever happens. */
  readonly #ttl: SlidingTtl | null;
  readonly #fixedDeadlineMs: number;
  #feed: LiveFeed | null = null;
  #users = 0;
  /** Why its last deletion failed; `null` where none did. */
  #undeleted: RefusalCode | null = null;

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

  /** Whether the registry may let go of the stream now. Where storage has yet to know of its use for that, it is told. */
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

  /** The feed of live events. The caller has retained the stream. */
  get feed(): LiveFeed {
    if (this.#feed === null) {
      this.#feed = new LiveFeed();
      this.stored.observer = this;
    }
    return this.#feed;
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
   * Appends, closes, or both; `answer` gets the outcome when it is durable (specification 4.2, 4.3). A promise for each
   * append would cost more than to store it; one comes only where something else than storage has to be waited for.
   */
  append(command: AppendCommand, answer: AnswerAppend): MaybePromise<void> {
    const nowMs = this.#context.clock.nowMs();
    const decision = decideAppend(this.#reserved, this.#format, command, nowMs);
    const hasData = command.body.length > 0;
    switch (decision.kind) {
      case "accept":
        return this.#store(decision.record, hasData, answer);
      case "settled":
        return chain(this.#answerRepeated(hasData, decision.producer), answer);
      case "refused":
        return chain(this.#answerWhenDurable((tail) => (decision.closed === true ? { ...decision, nextOffset: this.offsetAt(tail) } : decision)), answer);
    }
  }

  /** The request asks for what was done before: nothing changes but the stream's life. */
  #answerRepeated(hasData: boolean, producer: ProducerEcho | null): MaybePromise<AppendOutcome> {
    // First of all it is tied to what it cites: that may fail while the note of the touch is on its way.
    const answer = this.#answerWhenDurable((tail, closed) => this.#appended(tail, closed, true, hasData, producer));
    const touched = this.touch();
    return touched instanceof Promise ? touched.then(() => answer) : answer;
  }

  #store(record: AppendRecord, hasData: boolean, answer: AnswerAppend): void {
    const from = this.#reserved.tail;
    let generation = 0;
    const rejection = this.#context.storage.append(this.stored, record, from, (how) => {
      this.#reserved.settle(generation, how === "durable");
      this.#ttl?.end(record.atMs, how);
      if (how !== "durable") return answer(refuse(how));
      this.trimExcess();
      answer(this.#appended(from + record.payload.length, this.closed, false, hasData, record.producer));
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

  #appended(tail: Position, closed: boolean, duplicate: boolean, hasData: boolean, producer: ProducerEcho | null): AppendOutcome {
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
    return new Promise((resolve) => {
      this.#context.storage.barrier(this.stored, (how) => resolve(how === "durable" ? answer() : refuse(how)));
    });
  }

  /** The same for what waits for the stream's deletion, which may fail with what it waited for itself. */
  whenGone<T>(answer: () => T): MaybePromise<T | Refused> {
    return this.whenDurable(() => (this.isCurrent ? refuse(this.#undeleted ?? "overloaded") : answer()));
  }

  /** Storage has not deleted it: it lives on, unless its creation failed before that. */
  deletionFailed(how: Exclude<Settlement, "durable">): void {
    this.#undeleted = how;
    if (this.phase !== "gone") this.phase = "live";
  }

  /** Storage has settled the creation. */
  creationSettled(how: Settlement): void {
    this.#reserved.settle(0, how === "durable");
    this.#ttl?.end(this.config.createdAtMs, how);
    if (how !== "durable") this.phase = "gone";
    else if (this.phase === "creating") this.phase = "live";
  }

  /** The token of a position: names the segment of the byte before it, so that a position has one token for ever. */
  offsetAt(position: Position): string {
    return offsetIn(this.stored, position);
  }

  /** The token of the earliest byte that is kept. */
  get earliestOffset(): string {
    return this.offsetAt(this.stored.earliest);
  }

  /** Where reading begins for an offset token, or why it can't (specification 4.6). */
  locate(offset: ParsedOffset): MaybePromise<Position | Refused> {
    switch (offset.kind) {
      case "start":
        return this.stored.earliest;
      case "now":
        return this.tail;
      case "at":
        return this.#locateAt(offset.segmentStart, offset.byteInSegment);
    }
  }

  #locateAt(segmentStart: Position, byteInSegment: number): MaybePromise<Position | Refused> {
    const position = segmentStart + byteInSegment;
    const { earliest } = this.stored;
    if (position < earliest) return refuse("offset-gone", { earliestOffset: this.earliestOffset });
    if (!this.stored.hasSegment(segmentStart, byteInSegment)) {
      return refuse("invalid-offset", { detail: "The offset was not given out by this stream." });
    }
    if (!this.isJson || byteInSegment === 0 || position === this.tail || position === earliest) return position;
    const before = this.#context.storage.read(this.stored, position - 1, 1);
    if (Buffer.isBuffer(before)) return atMessageBoundary(before, position);
    return before.then(
      (byte) => atMessageBoundary(byte, position),
      (error: unknown) => {
        // The stream begins later meanwhile: perhaps at this very place.
        if (error instanceof TrimmedStreamError && position <= this.stored.earliest) return this.#locateAt(segmentStart, byteInSegment);
        throw error;
      },
    );
  }

  /**
   * Reads durable bytes from `from` on, about `maxBytes` of them: a JSON message longer than that comes whole.
   * Most that comes from the disk comes to memory from `allocate`, which nobody else keeps.
   * Throws DamagedStreamError, DeletedStreamError, TrimmedStreamError and StorageBusyError.
   */
  read(from: Position, maxBytes: number, allocate?: Allocate): MaybePromise<Chunk> {
    const tail = this.tail;
    if (from >= tail) return this.#chunk(from, NO_BYTES);
    const bytes = this.#context.storage.read(this.stored, from, Math.min(maxBytes, tail - from), allocate);
    const enough = Buffer.isBuffer(bytes) && bytes.length === Math.min(maxBytes, tail - from);
    if (enough && (!this.isJson || from + bytes.length === tail)) return this.#chunk(from, bytes);
    return this.#readWhole(from, bytes, maxBytes);
  }

  /** The longer way: gathers pieces up to `maxBytes`, and in JSON streams ends at the end of a message. */
  async #readWhole(from: Position, first: MaybePromise<Buffer>, maxBytes: number): Promise<Chunk> {
    this.retain();
    try {
      let bytes = await first;
      let wantedBytes = maxBytes;
      while (from + bytes.length < this.tail) {
        if (bytes.length >= wantedBytes) {
          const whole = this.#wholePart(bytes);
          if (whole.length > 0) return this.#chunk(from, whole);
          wantedBytes *= 2;
        }
        const more = await this.#readMore(from, bytes, wantedBytes);
        if (more === null) return this.#chunk(from, this.#wholePart(bytes));
        bytes = Buffer.concat([bytes, more]);
      }
      return this.#chunk(from, bytes);
    } finally {
      this.release();
    }
  }

  /** What follows `bytes`; `null` when it was dropped meanwhile or is damaged, and what was read before is worth an answer. */
  async #readMore(from: Position, bytes: Buffer, wantedBytes: number): Promise<Buffer | null> {
    const at = from + bytes.length;
    try {
      return await this.#context.storage.read(this.stored, at, Math.min(wantedBytes - bytes.length, this.tail - at));
    } catch (error) {
      const isLost = error instanceof TrimmedStreamError || error instanceof DamagedStreamError;
      if (isLost && this.#wholePart(bytes).length > 0) return null;
      throw error;
    }
  }

  /** As much of `bytes` as may be served by itself. */
  #wholePart(bytes: Buffer): Buffer {
    return this.isJson ? bytes.subarray(0, wholeMessagesLength(bytes)) : bytes;
  }

  #chunk(from: Position, bytes: Buffer): Chunk {
    const to = from + bytes.length;
    const upToDate = to === this.tail;
    return { kind: "chunk", from, to, bytes, upToDate, closed: upToDate && this.closed };
  }
}

/** The token of a position of a stream. */
export function offsetIn(stored: StoredStream, position: Position): string {
  const segmentStart = stored.segmentStartBefore(position);
  return formatOffset(segmentStart, position - segmentStart);
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
