// One connection that carries events: how long it lasts, how it ends, and what its client has yet to take.

import type { Timer } from "../../ops/clock.js";
import { encodeRetryAlone, SSE_COMMENT } from "../../protocol/sse-events.js";
import type { UnreadAnswer } from "../bounds/unread.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";
import type { Outbound } from "../node/message.js";
import { OwnResponse } from "../node/own-response.js";
import { heldBy, LAST_CHUNK, writeChunk } from "./sse-chunks.js";
import { lifetimeOf } from "./sse-lifetime.js";

/** How long a client that has been sent all of an answer may take to end it. */
const MAX_END_MS = 5_000;

/**
 * One connection that carries events. It lasts for about `--sse-lifetime`, and ends between two events. It keeps no
 * backlog: who reads for it sends more once the client has taken what there was.
 */
export abstract class SseConnection {
  /** When it was last sent something, data or a comment. */
  sentAtMs: number;
  protected readonly context: Context;
  protected readonly exchange: Exchange;
  /** Whether what is written is framed here. */
  readonly #isChunked: boolean;
  #hasBegun = false;
  #isOver = false;
  #timer: Timer;
  /** What the client has yet to take; `null` while it keeps up. */
  #unread: UnreadAnswer | null = null;

  constructor(context: Context, exchange: Exchange) {
    const { clock } = context;
    this.context = context;
    this.exchange = exchange;
    this.sentAtMs = clock.nowMs();
    this.#isChunked = exchange.res instanceof OwnResponse && exchange.res.takeChunks();
    this.#timer = clock.after(lifetimeOf(context), () => this.finish());
  }

  /** The client has taken all that waited for it. */
  protected abstract roomAgain(): void;

  /** The client has ended its side, and may be gone: what there is may be sent, and nothing be waited for. */
  protected abstract clientEnded(): void;

  /** It is over. Called once, however it ended. */
  protected abstract left(): void;

  /** Whether the first events are out. */
  protected get hasBegun(): boolean {
    return this.#hasBegun;
  }

  protected get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the client has yet to take something: no more is sent until it has. */
  protected get isFull(): boolean {
    return this.#unread !== null;
  }

  /** Whether it carries more; false once the client has ended its side, and Node therefore this one. */
  protected get isWritable(): boolean {
    return !this.#isOver && this.#out.writable;
  }

  /**
   * Where events are written once the head is out: the answer would only pass them on, and waits for the same `drain`.
   * An embedding server may have no socket.
   */
  get #out(): Pick<Outbound, "writable" | "write" | "on"> {
    const { res } = this.exchange;
    return res instanceof OwnResponse ? res.req.socket : res;
  }

  /** Watches the connection. The head of the answer must have been written. */
  protected watch(): void {
    this.#out.on("drain", () => this.#drained());
    this.exchange.res.on("close", () => this.#drop());
    this.exchange.onClientEnd(() => this.clientEnded());
    this.exchange.onRightEnd(() => this.finish());
  }

  /**
   * Whether memory has room for events, or for so many bytes of them. Else the answer is over: the client comes back,
   * and finds room or not.
   */
  protected admits(events: Buffer | number): boolean {
    const held = typeof events === "number" ? events : this.#held(events);
    const isAdmitted = this.context.unread.admits(held, this.exchange);
    if (!isAdmitted) this.#refuse();
    return isAdmitted;
  }

  /** Whole events may end. An answer without any is cut: ended, it would seem to be all that there is. */
  #refuse(): void {
    this.exchange.code ??= "overloaded";
    if (this.#hasBegun) return this.finish();
    if (this.#leave()) this.exchange.req.socket.destroy();
  }

  /** Sends whole events, which were admitted, after an `opening` if there is one. Returns whether more has room. */
  protected write(events: Buffer, nowMs: number, opening: Buffer | null = null): boolean {
    this.sentAtMs = nowMs;
    if (opening !== null) {
      this.context.inFlight.sent(this.exchange, opening);
      this.#pass(opening);
    }
    this.context.inFlight.sent(this.exchange, events);
    const isRoomLeft = this.#pass(events);
    if (!this.#hasBegun) this.#begun();
    if (!isRoomLeft) this.#unread ??= this.context.unread.add(this.exchange, this.#held(events));
    return isRoomLeft;
  }

  /** The memory of events that wait until they are taken. */
  #held(events: Buffer): Buffer {
    return this.#isChunked ? heldBy(events) : events;
  }

  /** Passes bytes on to the connection; returns whether more has room. */
  #pass(bytes: Buffer): boolean {
    const out = this.#hasBegun ? this.#out : this.exchange.res;
    return this.#isChunked ? writeChunk(out, bytes) : out.write(bytes);
  }

  /** Sends a comment between two events; nothing where data waits to be taken, which shows the client as much. */
  beat(nowMs: number): void {
    this.sentAtMs = nowMs;
    // Whether there is room for more is found with the next event.
    if (this.#isQuiet) this.#pass(SSE_COMMENT);
  }

  /** Ends the answer, and has the client wait for `comeBackMs` before it asks again; `null` says nothing. */
  dismiss(comeBackMs: number | null): void {
    if (comeBackMs !== null && this.#isQuiet) this.#pass(encodeRetryAlone(comeBackMs));
    this.finish();
  }

  /**
   * Ends the answer: everything sent so far is whole events. A client that has yet to take some of it may go on as
   * long as it takes any.
   */
  finish(): void {
    if (!this.#leave()) return;
    if (this.#unread === null) this.#cutSoon();
    if (this.#isChunked) this.exchange.res.end(LAST_CHUNK);
    else this.exchange.res.end();
  }

  /** Whether the last event is with the client, and another could follow. */
  get #isQuiet(): boolean {
    return this.#hasBegun && !this.#isOver && this.#unread === null && this.#out.writable;
  }

  /** The head is out, and the first event. */
  #begun(): void {
    const { res } = this.exchange;
    if (res instanceof OwnResponse) res.forgetHead();
    this.#hasBegun = true;
  }

  #cutSoon(): void {
    this.#timer = this.context.clock.after(MAX_END_MS, () => this.exchange.req.socket.destroy());
  }

  #drained(): void {
    const isTaken = this.#unread !== null;
    this.#noteTaken();
    if (!this.#isOver) this.roomAgain();
    else if (isTaken) this.#cutSoon();
  }

  /** The connection is gone. */
  #drop(): void {
    this.#leave();
    this.#timer.cancel();
    this.#noteTaken();
  }

  #noteTaken(): void {
    this.#unread?.release();
    this.#unread = null;
  }

  #leave(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#timer.cancel();
    this.left();
    this.context.inFlight.end(this.exchange);
    return true;
  }
}
