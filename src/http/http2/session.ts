// One connection of HTTP/2, and the streams that are open on it.

import type { ServerHttp2Session } from "node:http2";
import type { TLSSocket } from "node:tls";
import { plainSocketOf } from "../node/plain-socket-of.js";
import { unsentBytesOf } from "../node/write-queue.js";
import { ENHANCE_YOUR_CALM } from "./codes.js";
import { ResetBudget, type ClientResets } from "./reset-budget.js";
import { ServingTurn, type ServingTurns } from "./serving-turns.js";
import type { StreamAnswer } from "./stream-answer.js";
import type { StreamRequest } from "./stream-request.js";

/** How long a client may take nothing of an answer, not even its end. */
const MAX_STALL_MS = 60_000;
/** Turns of the event loop in which Node writes the last frames of a connection. */
const PROBE_TURNS = 4;

/** How long a connection may take, in milliseconds. */
export interface SessionLimits {
  /** For its first frame, and for the head of a request. */
  readonly headersTimeout: number;
  /** For a request with its body. */
  readonly requestTimeout: number;
  /** Without a request. */
  readonly keepAliveTimeout: number;
}

/** What the connections of a server share. */
export interface Shared {
  readonly resets: ClientResets;
  readonly turns: ServingTurns;
}

/** A stream whose client has not sent all of its request, or has not taken all of its answer. */
export class OpenStream {
  readonly req: StreamRequest;
  readonly answer: StreamAnswer;
  readonly beganAtMs: number;
  /** When some of its answer was last seen to be taken, once that is whole; and what was left then. */
  takenAtMs: number | null = null;
  leftBytes = 0;
  /** Its place among those of its connection; negative when it is not among them. */
  slot = -1;

  constructor(req: StreamRequest, answer: StreamAnswer, nowMs: number) {
    this.req = req;
    this.answer = answer;
    this.beganAtMs = nowMs;
  }
}

/** Watches one connection: cuts what is idle, too slow, or breaks off too much. */
export class Session {
  readonly socket: TLSSocket;
  readonly #session: ServerHttp2Session;
  readonly #limits: SessionLimits;
  /** Each knows its place. A Set would let the garbage collector keep streams that are long over. */
  readonly #open: OpenStream[] = [];
  readonly #resets: ResetBudget;
  readonly #turn: ServingTurn;
  /** The highest number of a stream that is counted. A client gives them odd numbers, each higher than those before. */
  #lastId = -1;
  /** Whether the client has sent its settings, as every client does first. */
  #isGreeted = false;
  #idleSinceMs: number;
  /** Whether the client has ended its side. */
  #isLeft = false;
  /** Whether it had, and the system had all bytes of the connection, when that was last looked at. */
  #wasSent = false;
  /** What Node had been given to write when it was last seen to be written. */
  #provenBytes = 0;

  constructor(
    session: ServerHttp2Session,
    socket: TLSSocket,
    limits: SessionLimits,
    { resets, turns }: Shared,
    nowMs: number,
  ) {
    this.#session = session;
    this.socket = socket;
    this.#limits = limits;
    this.#idleSinceMs = nowMs;
    this.#resets = new ResetBudget(resets, socket, nowMs);
    this.#turn = new ServingTurn(turns);
    session.once("remoteSettings", () => (this.#isGreeted = true));
    // A client that has ended its side can't take more than what its windows allow by now: it is going.
    socket.once("end", () => this.#clientEnded());
  }

  /** A stream with this number has come. */
  began(id: number, nowMs: number): void {
    if (id > this.#lastId + 2) this.#spend((id - this.#lastId) / 2 - 1, nowMs);
    if (id > this.#lastId) this.#lastId = id;
  }

  /** A stream is open, which `serve` answers. */
  add(stream: OpenStream, serve: () => void): void {
    stream.slot = this.#open.push(stream) - 1;
    const request = {
      get isOver() {
        return stream.answer.destroyed;
      },
      serve,
    };
    this.#turn.add(request, this.#resets.hasMany);
  }

  /** A stream is over; one that `isBroken` has been reset. */
  remove(stream: OpenStream | null, isBroken: boolean, nowMs: number): void {
    if (stream !== null && stream.slot >= 0) this.#vacate(stream);
    if (this.#open.length === 0) this.#becomeIdle(nowMs);
    if (this.#session.closed) this.#probe();
    if (isBroken) this.#spend(1, nowMs);
  }

  #spend(resets: number, nowMs: number): void {
    if (!this.#session.destroyed && !this.#resets.spend(nowMs, resets))
      this.#session.destroy(new Error("too many streams were broken off"), ENHANCE_YOUR_CALM);
  }

  /**
   * Counts the streams that Node resets without a word, as those with too many headers: their numbers are all that is
   * known of them. A client that leaves out numbers has them counted too.
   */
  #countUnseen(nowMs: number): void {
    const { lastProcStreamID = 0 } = this.#session.state;
    if (lastProcStreamID < this.#lastId + 2) return;
    this.#spend((lastProcStreamID - this.#lastId) / 2, nowMs);
    this.#lastId = lastProcStreamID;
  }

  /** Moves the last one to its place. */
  #vacate(stream: OpenStream): void {
    const last = this.#open.pop();
    if (last !== undefined && last !== stream) {
      last.slot = stream.slot;
      this.#open[stream.slot] = last;
    }
    stream.slot = -1;
  }

  #becomeIdle(nowMs: number): void {
    this.#idleSinceMs = nowMs;
    // Node may wait for ever for a write to a client that has gone. What the streams had to say is on its way.
    if (this.#isLeft) setImmediate(() => this.socket.destroySoon());
  }

  /** Ends what takes too long. */
  look(nowMs: number): void {
    this.#countUnseen(nowMs);
    if (this.#session.destroyed) return;
    const { headersTimeout, keepAliveTimeout } = this.#limits;
    const idleMs = this.#open.length === 0 ? nowMs - this.#idleSinceMs : 0;
    if (!this.#isGreeted && nowMs - this.#idleSinceMs >= headersTimeout) return this.destroy();
    if (idleMs >= 2 * keepAliveTimeout) return this.destroy();
    // Says goodbye first; a client that does not go by itself is cut as above.
    if (idleMs >= keepAliveTimeout) return this.close();
    // The client may have gone since it was told to, or in the middle of a write.
    if (this.#session.closed || this.socket.bytesWritten !== this.#provenBytes) this.#probeNow();
    // Its windows open no more: where nothing else holds the rest back, it is never sent.
    const isSent = this.#isLeft && unsentBytesOf(this.socket) === 0;
    const stallMs = isSent && this.#wasSent ? 0 : MAX_STALL_MS;
    this.#wasSent = isSent;
    for (const stream of [...this.#open]) this.#lookAt(stream, nowMs, stallMs);
  }

  #lookAt(stream: OpenStream, nowMs: number, stallMs: number): void {
    if (stream.answer.writableEnded) {
      const { unsentBytes } = stream.req.socket;
      if (stream.takenAtMs === null || unsentBytes < stream.leftBytes) {
        stream.takenAtMs = nowMs;
        stream.leftBytes = unsentBytes;
      } else if (nowMs - stream.takenAtMs >= stallMs) stream.req.destroy();
    } else if (!stream.req.isReceived && nowMs - stream.beganAtMs >= this.#limits.requestTimeout) stream.req.destroy();
  }

  #clientEnded(): void {
    this.#isLeft = true;
    this.close();
    for (const { req, answer } of [...this.#open]) {
      // The rest of it does not come any more.
      if (!req.isReceived && !answer.writableEnded) req.destroy();
      else answer.onClientEnd?.();
    }
    if (this.#open.length === 0) this.#becomeIdle(this.#idleSinceMs);
  }

  /** Takes no more streams; ends the connection when those that are open are over. */
  close(): void {
    if (!this.#session.closed) this.#session.close();
    this.#probe();
  }

  /** Finds out whether the client is still there, once the last frames are written. */
  #probe(turns = PROBE_TURNS): void {
    if (turns > 0) setImmediate(() => this.#probe(turns - 1));
    else this.#probeNow();
  }

  /**
   * Under TLS, Node forgets a write that fails: it goes on waiting for it, and reads nothing meanwhile. An empty write
   * below TLS costs no bytes, and where it fails the connection is closed. Once Node has ended its side such a write
   * always fails, and Node reads until the client has ended its own.
   */
  #probeNow(): void {
    const plain = this.socket.writableEnded ? null : plainSocketOf(this.socket);
    // Behind a write that waits and then fails, it would never be over.
    if (plain === null || unsentBytesOf(plain) > 0) return;
    // A write is counted here whether it fails or not: without a new one there is nothing to find out.
    this.#provenBytes = this.socket.bytesWritten;
    plain.write("");
  }

  /** Cuts the connection. */
  destroy(): void {
    this.#session.destroy();
    this.socket.destroy();
  }
}
