// Answers small requests straight to the socket, without Node's ServerResponse.
//
// Private names: `parser` of a socket, and `onIncoming` and `incoming` of that. Node makes a ServerResponse for every
// request before anybody else sees the request; only the parser knows of it earlier, and that takes a third off the
// time of a small request. Where a version of Node lacks them, every request gets its ServerResponse.

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { answerUnderWay } from "./answer-under-way.js";
import { DirectRequest } from "./direct-request.js";
import type { Inbound } from "./message.js";
import { KEEP_ALIVE_SECONDS } from "../encoding/head.js";

/** The handler of a request that has its connection to itself. */
export interface LoneExchange {
  readonly req: Inbound;
  /** From now on the answer goes through Node's own object. */
  takeResponse(res: ServerResponse): void;
  /** The client has gone. */
  abandon(): void;
}

/** Registers a request with the connection and handles it; false where it needs Node's own answer. */
export type Serve = (req: DirectRequest, connection: DirectConnection) => boolean;

/** Called with a complete head; the number tells the parser whether the connection changes its protocol. */
type OnIncoming = (req: DirectRequest, keepAlive: boolean) => number;

/** A socket with Node's private members for its parser, and for what the parser does with a request. */
interface ParsedSocket {
  readonly parser?: { onIncoming?: OnIncoming | null; incoming: DirectRequest | null } | null;
}

/** How much longer a connection waits than its client was told, so that the client closes first. */
const KEEP_ALIVE_BUFFER_MS = 1000;

/**
 * A connection whose requests come one at a time, as nearly all do. Each may be answered with one string written
 * straight to the socket: Node's ServerResponse takes a third of a small request's time. A request that is less simple
 * gets a ServerResponse, at once or later; Node then finds everything as if it had created one from the start.
 */
export class DirectConnection {
  readonly #socket: Socket;
  readonly #toNode: OnIncoming;
  readonly #serve: Serve;
  readonly #idleTimeoutMs: number;
  /** When its last answer was given, by the clock of whoever answers. */
  answeredAtMs = 0;
  #lone: LoneExchange | null = null;
  #hasAsked = false;
  /** Whether the socket has our timer, which must be gone before Node answers by itself. */
  #hasTimer = false;

  private constructor(socket: Socket, toNode: OnIncoming, serve: Serve, idleTimeoutMs: number) {
    this.#socket = socket;
    this.#toNode = toNode;
    this.#serve = serve;
    this.#idleTimeoutMs = idleTimeoutMs;
  }

  /**
   * Passes the requests of a new connection to `serve`; `null` where this version of Node lacks the private fields. The
   * connection tells its client that it waits `keepAliveMs` for the next request.
   */
  static open(socket: Socket, serve: Serve, keepAliveMs = KEEP_ALIVE_SECONDS * 1000): DirectConnection | null {
    const { parser } = socket as ParsedSocket; // as its type says
    if (typeof parser?.onIncoming !== "function") return null;
    const connection = new DirectConnection(socket, parser.onIncoming, serve, keepAliveMs + KEEP_ALIVE_BUFFER_MS);
    parser.onIncoming = (req, keepAlive) => connection.#receive(req, keepAlive);
    return connection;
  }

  /** Whether a request waits for an answer that Node does not know of. */
  get isBusy(): boolean {
    return this.#lone !== null;
  }

  /** Whether a request has come. */
  get hasAsked(): boolean {
    return this.#hasAsked;
  }

  #receive(req: DirectRequest, keepAlive: boolean): number {
    this.#hasAsked = true;
    // It is pipelined after another: Node answers both.
    this.handOver();
    if (keepAlive && this.#isFree(req) && this.#serve(req, this)) return 0;
    return this.#passOn(req, keepAlive);
  }

  /** Whether nothing else is asked or sent on the connection, and nothing but plain HTTP/1.1 is asked for. */
  #isFree({
    httpVersionMajor,
    httpVersionMinor,
    upgrade,
  }: DirectRequest & { readonly upgrade?: boolean | null }): boolean {
    if (httpVersionMajor !== 1 || httpVersionMinor !== 1 || upgrade === true) return false;
    return answerUnderWay(this.#socket) === null && this.#socket.writableLength === 0 && this.#socket.writable;
  }

  #passOn(req: DirectRequest, keepAlive: boolean): number {
    if (this.#hasTimer) this.#socket.setTimeout(0);
    this.#hasTimer = false;
    return this.#toNode(req, keepAlive);
  }

  /** `lone` has the connection to itself until it is answered or passed to Node. */
  begin(lone: LoneExchange): void {
    this.#lone = lone;
  }

  /** Makes Node create an answer for the waiting request; does nothing when none waits. */
  handOver(): void {
    const lone = this.#lone;
    this.#lone = null;
    if (!(lone?.req instanceof DirectRequest)) return;
    lone.req.expectResponse((res) => lone.takeResponse(res));
    this.#passOn(lone.req, true);
  }

  /** Answers `lone`, whose body is read, with all of `text`; false where some of it waits for the client. */
  answer(lone: LoneExchange, text: string, nowMs = 0): boolean {
    if (this.#lone !== lone) throw new Error("the request has its answer already");
    this.#lone = null;
    this.answeredAtMs = nowMs;
    const { parser } = this.#socket as ParsedSocket; // as its type says
    if (parser) parser.incoming = null;
    // This side of the connection has ended.
    if (!this.#socket.writable) return true;
    this.#socket.write(text, "latin1");
    if (!this.#hasTimer) this.#socket.setTimeout(this.#idleTimeoutMs);
    this.#hasTimer = true;
    return this.#socket.writableLength === 0;
  }

  /** Calls `done` when the client has taken all it was sent, or has gone. */
  whenTaken(done: () => void): void {
    this.#socket.write("", "latin1", done);
  }

  /** The connection has been idle: ends it, unless a request waits. */
  timedOut(): void {
    if (this.#lone === null) this.#socket.destroy();
  }

  /** The connection is gone. */
  closed(): void {
    const lone = this.#lone;
    this.#lone = null;
    lone?.abandon();
  }
}
