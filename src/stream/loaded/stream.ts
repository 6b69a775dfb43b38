import { formatOf, type StreamFormat } from "../../protocol/content-type.js";
import { checkOf, type ReadStart, type TokenPlace } from "../../protocol/offset.js";
import type {
  AppendRecord,
  MaybePromise,
  Position,
  Settlement,
  StoredStream,
  StreamConfig,
  StreamObserver,
} from "../../storage/storage.js";
import { fromBeginning } from "../rules/beginning.js";
import { chain } from "./chain.js";
import { readChunk, type Chunk, type ReadOptions } from "./chunk.js";
import type { AppendCommand, AppendHead } from "../rules/command.js";
import { decideAppend, holdsData, refuseByHead, type AppendDecision } from "../rules/decide.js";
import { deadlineOf, slides } from "../rules/expiry.js";
import { LiveFeed, type Advance } from "./live.js";
import { isTokenOf, offsetIn } from "../rules/offset-tokens.js";
import { placeOf, type ReadFrom } from "./offset-place.js";
import {
  MOVED,
  refuseRejected,
  refuseSettled,
  TOO_MANY_PRODUCERS,
  type AnswerAppend,
  type AppendOutcome,
  type ProducerEcho,
  type Refused,
} from "../rules/outcome.js";
import { ReservedState } from "./reserved.js";
import { trimExcess } from "./retention.js";
import { SlidingTtl } from "./sliding-ttl.js";
import type { Contention, StreamContextOf } from "./stream-context.js";

export type { Chunk } from "./chunk.js";
export type { ReadFrom } from "./offset-place.js";
export type { Contention } from "./stream-context.js";
export {
  DamagedStreamError,
  DeletedStreamError,
  NoMajorityError,
  StorageBusyError,
  TrimmedStreamError,
  type Allocate,
  type MaybePromise,
  type Position,
  type StoredStream,
  type StreamList,
} from "../../storage/storage.js";
export { ReadRoom } from "./read-room.js";

/**
 * The phase of one incarnation of a name. `creating`, `deleting` and `keeping` have been submitted to storage and are
 * not durable yet. A `kept` stream is deleted, but its forks still need its bytes and its name.
 */
export type StreamPhase = "creating" | "live" | "deleting" | "keeping" | "kept" | "gone";

/** The parts that all streams of a server share. */
export type StreamContext = StreamContextOf<Stream>;

/** The deletion of a stream that was loaded as deleted. All streams share it: most are never deleted. */
const NO_DELETION = Promise.resolve(null);

/** One stream in memory: decides appends, reads chunks, wakes live readers. */
export class Stream implements StreamObserver {
  readonly stored: StoredStream;
  /** Its TTL, where use restarts it; `null` for a stream that expires at a fixed time or never. */
  readonly ttl: SlidingTtl | null;
  phase: StreamPhase;
  /** Whether it was used since the last eviction round. */
  recentlyUsed = true;
  /** Resolves when its last deletion is over: to `null` when that is durable, else to why it failed. */
  deletion: Promise<Refused | null> = NO_DELETION;
  /** How many of its producers {@link LoadedProducers} has counted. */
  countedProducers = 0;
  readonly #context: StreamContext;
  readonly #reserved: ReservedState;
  readonly #format: StreamFormat;
  readonly #fixedDeadlineMs: number;
  /** The check in its offset tokens; -1 until the first token. */
  #check = -1;
  #feed: LiveFeed | null = null;
  #users = 0;

  /** `initial` is the creation that was submitted to storage; `null` for a stream that was loaded. */
  constructor(context: StreamContext, stored: StoredStream, initial: AppendRecord | null) {
    this.#context = context;
    this.stored = stored;
    const { config } = stored;
    this.#format = formatOf(config.contentType);
    this.ttl = slides(config, context.ttlMode) ? new SlidingTtl(context, stored, initial) : null;
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

  /** How many producers it durably remembers. */
  get producerCount(): number {
    return this.stored.state.producers?.size ?? 0;
  }

  /** Whether the stream will be closed when everything submitted to storage is durable. */
  get reservedClosed(): boolean {
    return this.#reserved.closed;
  }

  /** The tail when everything submitted to storage is durable. */
  get reservedTail(): Position {
    return this.#reserved.tail;
  }

  get deadlineMs(): number {
    return this.ttl === null ? this.#fixedDeadlineMs : this.ttl.deadlineMs;
  }

  isExpired(nowMs: number): boolean {
    return this.deadlineMs <= nowMs;
  }

  /** Milliseconds until the stream expires if nobody uses it; `null` when it never does. */
  remainingMs(nowMs: number): number | null {
    const deadlineMs = this.deadlineMs;
    return deadlineMs === Infinity ? null : Math.max(0, deadlineMs - nowMs);
  }

  /** Restarts a sliding TTL for a read. Answer the read when this is over: no crash can undo the restart then. */
  touch(): MaybePromise<void> {
    if (this.ttl !== null) return this.ttl.touch();
  }

  /** Whether the name still belongs to this stream: it is live, or is being created. */
  get isCurrent(): boolean {
    return this.phase === "creating" || this.phase === "live";
  }

  /** Whether another server has deleted it, which nobody here has been told yet. */
  get isOver(): boolean {
    return this.phase === "live" && this.stored.standing !== "live";
  }

  /** Whether storage has settled everything that was submitted. */
  get #isSettled(): boolean {
    return this.#reserved.pending === 0 && (this.phase === "live" || this.phase === "kept");
  }

  /** Whether the stream may be evicted. */
  get idle(): boolean {
    const isNoted = this.ttl === null || this.ttl.isNoted;
    return this.#users === 0 && this.#isSettled && isNoted && !this.stored.isInUse;
  }

  /** Whether the stream may be evicted now. Notes its last use in storage first, where storage does not know it yet. */
  readyToLeave(): boolean {
    if (this.phase === "live" && this.#users === 0) this.ttl?.note();
    return this.idle;
  }

  /** Keeps the stream in memory until `release`. Call it before an await after which the stream is still used. */
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
    this.#feed?.emitAdvance();
  }

  deleted(): void {
    this.#feed?.emit("end");
  }

  /**
   * Appends, closes, or both; `answer` gets the outcome when it is durable (docs/api.md, Append). Returns a promise
   * only where it waits for more than storage: one for each append would cost more than storing it.
   */
  append(command: AppendCommand, answer: AnswerAppend, contention: Contention | null = null): MaybePromise<void> {
    const decision = this.#decide(command);
    if (decision.kind === "accept") return this.#store(decision.record, command, answer, contention);
    const refreshed = this.refresh();
    if (!(refreshed instanceof Promise)) return this.#answerUnstored(decision, command, answer, contention);
    return refreshed.then(() => {
      // What another server did since may turn the answer round.
      const again = this.isOver ? null : this.#decide(command);
      if (again === null) return this.#decideAgain(command, answer, contention);
      return again.kind === "accept"
        ? this.#store(again.record, command, answer, contention)
        : this.#answerUnstored(again, command, answer, contention);
    });
  }

  #decide(command: AppendCommand): AppendDecision {
    const nowMs = this.#context.clock.nowMs();
    return decideAppend(this.#reserved, this.#format, command, nowMs, this.#expectedTail(command));
  }

  #answerUnstored(
    decision: Exclude<AppendDecision, { kind: "accept" }>,
    command: AppendCommand,
    answer: AnswerAppend,
    contention: Contention | null,
  ): MaybePromise<void> {
    const outcome =
      decision.kind === "unchanged"
        ? this.#answerRepeated(holdsData(command.body), decision.producer)
        : this.#refuseWhenDurable(decision);
    return chain(outcome, (made) => (made === MOVED ? this.#decideAgain(command, answer, contention) : answer(made)));
  }

  #decideAgain(command: AppendCommand, answer: AnswerAppend, contention: Contention | null): void {
    const rounds = (contention?.rounds ?? 0) + 1;
    const sinceMs = contention?.sinceMs ?? this.#context.clock.nowMs();
    this.#context.decideAgain(this, command, answer, { rounds, sinceMs });
  }

  /** Makes the state no older than what any server acknowledged before this call (see Storage.refresh). */
  refresh(): MaybePromise<void> {
    return this.#context.storage.refresh(this.stored);
  }

  /** Why an append with data is refused for its head alone, once durable; `null` when it depends on the data. */
  refusalOf(head: AppendHead): MaybePromise<Refused | null> {
    const nowMs = this.#context.clock.nowMs();
    const refusal = refuseByHead(this.#reserved, this.#format, head, nowMs, this.#expectedTail(head));
    if (refusal === null) return null;
    return chain(this.#refuseWhenDurable(refusal), (made) => (made === MOVED ? null : made));
  }

  /** The position that an append's `If-Match` names; -1 for a token that is not this stream's. */
  #expectedTail({ ifMatch }: AppendHead): Position | null {
    if (ifMatch === null) return null;
    return this.isOwnToken(ifMatch) ? ifMatch.partStart + ifMatch.byteInPart : -1;
  }

  #refuseWhenDurable(refusal: Refused): MaybePromise<Refused> {
    const { tail } = this.#reserved;
    return this.whenDurable(() =>
      refusal.closed === true || refusal.code === "tail-moved"
        ? { ...refusal, nextOffset: this.offsetAt(tail) }
        : refusal,
    );
  }

  /** Answers a request for what was done before: it changes nothing, but it restarts a sliding TTL. */
  #answerRepeated(hasData: boolean, producer: ProducerEcho | null): MaybePromise<AppendOutcome> {
    // Waits first for the change that it repeats: that may fail while the touch is being noted.
    const { tail, closed } = this.#reserved;
    const answer = this.whenDurable(() => this.#appended(tail, closed, true, hasData, producer));
    const touched = this.touch();
    return touched instanceof Promise ? touched.then(() => answer) : answer;
  }

  #store(record: AppendRecord, command: AppendCommand, answer: AnswerAppend, contention: Contention | null): void {
    const { producer } = record;
    if (producer !== null && this.#reserved.markOf(producer.id) === undefined && !this.#context.hasRoomForProducer())
      return answer(TOO_MANY_PRODUCERS);
    const from = this.#reserved.tail;
    let generation = 0;
    const rejection = this.#context.storage.append(this.stored, record, from, (how) => {
      this.#reserved.settle(generation, how === "durable", producer);
      this.ttl?.end(record.atMs, how);
      if (how === "tail-moved") return this.#decideAgain(command, answer, contention);
      if (how !== "durable") return answer(refuseSettled(how));
      if (producer !== null && this.phase !== "gone") this.#context.producers.note(this);
      this.trimExcess();
      const hasData = holdsData(command.body);
      answer(this.#appended(from + record.payload.length, this.closed, false, hasData, producer));
    });
    if (rejection !== null) return answer(refuseRejected(rejection));
    generation = this.#reserved.reserve(record);
    this.ttl?.begin(record.atMs);
  }

  /** Drops the beginning of the stream beyond what retention keeps. */
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

  /**
   * Makes an answer once everything submitted before is durable; a refusal when some of that failed, {@link MOVED}
   * where it rests on what another server has changed.
   */
  whenDurable<T>(answer: () => T): MaybePromise<T | Refused> {
    if (this.#isSettled) return answer();
    const { tail } = this.#reserved;
    return new Promise((resolve) => {
      this.#context.storage.barrier(
        this.stored,
        (how) => resolve(how === "durable" ? answer() : refuseSettled(how)),
        tail,
      );
    });
  }

  /** Storage has settled the creation. */
  creationSettled(how: Settlement): void {
    this.#reserved.settle(0, how === "durable");
    this.ttl?.end(this.config.createdAtMs, how);
    if (how !== "durable") this.phase = "gone";
    else if (this.phase === "creating") this.phase = "live";
  }

  /** The offset token of a position; it never changes. */
  offsetAt(position: Position): string {
    return offsetIn(this.stored, position, this.#ownCheck);
  }

  /** Whether a token is this stream's own; any other is of an earlier incarnation of the name. */
  isOwnToken(place: TokenPlace): boolean {
    return isTokenOf(this.stored, place, this.#ownCheck);
  }

  get #ownCheck(): number {
    if (this.#check < 0) this.#check = checkOf(this.id);
    return this.#check;
  }

  /** The offset token of the earliest retained byte. */
  get earliestOffset(): string {
    return this.offsetAt(this.stored.earliest);
  }

  /** Where reading begins that a client asks for, or why it can't (docs/api.md, Read). */
  locate(offset: ReadStart, client?: ReadOptions["client"]): MaybePromise<ReadFrom | Refused> {
    return placeOf(this.#context.storage, this, offset, client);
  }

  /**
   * Reads about `maxBytes` durable bytes from `from` on, up to the end of an append or of a JSON message. One that is
   * longer is read whole, except that an append of bytes is cut at `maxBytes` for its `bounds`. Throws
   * DamagedStreamError, DeletedStreamError, StorageBusyError and, unless `from` is "start", TrimmedStreamError.
   */
  read(from: ReadFrom, maxBytes: number, options: ReadOptions = {}): MaybePromise<Chunk> {
    const context = this.#context;
    if (from !== "start") return readChunk(context, this, from, maxBytes, options);
    return fromBeginning(this, (earliest) => readChunk(context, this, earliest, maxBytes, options));
  }
}
