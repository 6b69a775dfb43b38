// Keeps waiting long-polls, and answers all of a stream together.

import type { Timer } from "../../ops/clock.js";
import { commonCursor, isGreaterCursor, nextCursor } from "../../protocol/cursor.js";
import { chain } from "../../stream/loaded/chain.js";
import type { MaybePromise, Position, Stream } from "../../stream/loaded/stream.js";
import { GONE, NOT_FOUND, type Refused } from "../../stream/rules/outcome.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";
import { guard } from "../context/guard.js";
import { isProblem, problem, type Problem } from "../encoding/problems.js";
import { answerChunk, serve, type ServedChunk } from "./served-chunk.js";
import type { EndRead } from "./staggered-ends.js";

/**
 * For this many seconds nginx serves the answer to the readers that waited in its cache for the same long-poll;
 * otherwise each of them would ask. Clients and other caches never see it.
 */
const COLLAPSING_SECONDS = "2";

const RIGHT_ENDED = problem("invalid-token", { detail: "The right to read has ended." });

/** A long-poll that has caught up. */
export interface Wait {
  readonly exchange: Exchange;
  /** The stream's tail. */
  readonly position: Position;
  /** The client's own cursor; `null` when it sent none. */
  readonly cursor: string | null;
  /** Whether what was asked for is another place each time. */
  readonly isMoving: boolean;
}

/** Where the long-polls of all streams wait (docs/api.md, Wait for more). */
export class WaitingRooms {
  readonly #context: Context;
  readonly #rooms = new Map<Stream, WaitingRoom>();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Answers when the stream moves on, closes or ends, or the time is over; at once if waiting is no use. */
  enter(stream: Stream, wait: Wait): void {
    const { inFlight } = this.#context;
    if (wait.exchange.isGone) return inFlight.end(wait.exchange);
    if (stream.closed || inFlight.closing || wait.exchange.hasClientEnded)
      return answerNothingNew(this.#context, stream, wait);
    const left = this.#context.liveReaders.enter(wait.exchange.sender, "long-poll");
    if (isProblem(left)) return this.#context.responder.refuse(wait.exchange, left);
    wait.exchange.onLeave = left;
    wait.exchange.account = null;
    wait.exchange.forgetSentHeaders();
    inFlight.waits(wait.exchange);
    let room = this.#rooms.get(stream);
    if (room === undefined) {
      room = new WaitingRoom(this.#context, stream, () => this.#rooms.delete(stream));
      this.#rooms.set(stream, room);
    }
    room.enter(wait);
  }

  /** How many wait for a stream. */
  readersOf(stream: Stream): number {
    return this.#rooms.get(stream)?.size ?? 0;
  }

  /** How to answer each waiting long-poll that there is nothing new. */
  *ends(): Generator<EndRead> {
    for (const room of this.#rooms.values()) yield* room.ends();
  }
}

/** The long-polls of one stream. It keeps the stream in memory while one of them waits. */
class WaitingRoom {
  readonly #context: Context;
  readonly #stream: Stream;
  readonly #onEmpty: () => void;
  readonly #waiters = new Set<Waiter>();
  readonly #leave: () => void;

  constructor(context: Context, stream: Stream, onEmpty: () => void) {
    this.#context = context;
    this.#stream = stream;
    this.#onEmpty = onEmpty;
    this.#leave = stream.follow(
      () => this.#wake(),
      () => {
        for (const waiter of this.#waiters) this.#turnAway(waiter, refusalOfEnded(this.#stream));
      },
    );
  }

  get size(): number {
    return this.#waiters.size;
  }

  enter(wait: Wait): void {
    const { clock, settings } = this.#context;
    const waiter: Waiter = { wait, timer: clock.after(settings.longPollTimeoutMs, () => this.#timeOut(waiter)) };
    this.#waiters.add(waiter);
    wait.exchange.onGone(() => this.#drop(waiter));
    // The client may be gone already, and would be kept until the time is over.
    wait.exchange.onClientEnd(() => this.#timeOut(waiter));
    wait.exchange.onRightEnd(() => this.#turnAway(waiter, RIGHT_ENDED));
  }

  *ends(): Generator<EndRead> {
    for (const waiter of this.#waiters) yield () => this.#timeOut(waiter);
  }

  /** Its connection is gone, or Node reports that its answer is out. */
  #drop(waiter: Waiter): void {
    if (!this.#waiters.has(waiter)) return;
    this.#take(waiter);
    this.#context.inFlight.end(waiter.wait.exchange);
  }

  /** Answers that there is nothing new; does nothing when it has been answered. */
  #timeOut(waiter: Waiter): void {
    if (!this.#waiters.has(waiter)) return;
    this.#take(waiter);
    answerNothingNew(this.#context, this.#stream, waiter.wait);
  }

  #turnAway(waiter: Waiter, refusal: Problem): void {
    if (!this.#waiters.has(waiter)) return;
    this.#take(waiter);
    this.#context.responder.refuse(waiter.wait.exchange, refusal);
  }

  /** All wait at the tail, so one read serves all of them, and one cursor makes them one reader to a cache. */
  #wake(): void {
    const chunks = new Map<Position, MaybePromise<ServedChunk>>();
    const { clock, random } = this.#context;
    const cursor = commonCursor(clock.nowMs(), this.#cursors(), random);
    const { tail, closed } = this.#stream;
    for (const waiter of this.#waiters) {
      const isAtTail = waiter.wait.position === tail;
      if (isAtTail && !closed) continue;
      this.#take(waiter);
      if (isAtTail) answerNothingNew(this.#context, this.#stream, waiter.wait);
      else this.#answer(waiter.wait, chunks, cursor);
    }
  }

  *#cursors(): Generator<string | null> {
    for (const { wait } of this.#waiters) yield wait.cursor;
  }

  #answer(wait: Wait, chunks: Map<Position, MaybePromise<ServedChunk>>, common: string): void {
    guard(this.#context, wait.exchange, () => {
      const chunk = chunks.get(wait.position) ?? this.#read(wait.position);
      chunks.set(wait.position, chunk);
      const isAhead = wait.cursor === null || isGreaterCursor(common, wait.cursor);
      return chain(chunk, (served) =>
        answerNews(this.#context, wait, served, isAhead ? common : cursorFor(this.#context, wait)),
      );
    });
  }

  #read(position: Position): MaybePromise<ServedChunk> {
    const { clock, settings } = this.#context;
    return chain(this.#stream.read(position, settings.chunkBytes), (chunk) =>
      serve(this.#stream, chunk, clock.nowMs()),
    );
  }

  #take(waiter: Waiter): void {
    waiter.timer.cancel();
    this.#waiters.delete(waiter);
    if (this.#waiters.size > 0) return;
    this.#leave();
    this.#onEmpty();
  }
}

interface Waiter {
  readonly wait: Wait;
  readonly timer: Timer;
}

/** Why there is nothing to wait for any more. The end is told of before the stream's phase says what became of it. */
function refusalOfEnded({ stored: { standing, forkCount } }: Stream): Refused {
  return standing !== "gone" && forkCount > 0 ? GONE : NOT_FOUND;
}

/** A cursor for one reader. */
function cursorFor({ clock, random }: Context, { cursor }: Wait): string {
  return nextCursor(clock.nowMs(), cursor, random);
}

/** Answers a long-poll with a chunk, and with a cursor of its own unless one is given. */
export function answerNews(context: Context, wait: Wait, chunk: ServedChunk, cursor = cursorFor(context, wait)): void {
  answerChunk(context, wait.exchange, chunk, wait.isMoving ? "moving" : "place", cursor);
}

/** 204: the reader has all there is, and of a closed stream all there will ever be. */
function answerNothingNew(context: Context, stream: Stream, wait: Wait): void {
  const { exchange, position, isMoving } = wait;
  guard(context, exchange, () => {
    const headers = [
      "Stream-Next-Offset",
      stream.offsetAt(position),
      "Stream-Up-To-Date",
      "true",
      "Cache-Control",
      "no-store",
    ];
    // To nginx before 1.23 the first of the two headers counts.
    if (!isMoving && !exchange.isPrivate) headers.unshift("X-Accel-Expires", COLLAPSING_SECONDS);
    if (stream.closed) headers.push("Stream-Closed", "true");
    else headers.push("Stream-Cursor", cursorFor(context, wait));
    context.responder.send(exchange, 204, headers, null);
  });
}
