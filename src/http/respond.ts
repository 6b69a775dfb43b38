import type { Clock } from "../ops/clock.js";
import { PREFLIGHT_HEADERS, type CorsPolicy } from "./cors.js";
import type { Exchange } from "./exchange.js";
import type { InFlight } from "./in-flight.js";
import { linger } from "./linger.js";
import { lengthHeader, linesOf, PreparedResponse, statusLine } from "./prepared-response.js";
import { problem, problemBody, problemHeaders, PROBLEMS, type Problem } from "./problems.js";

/** An answer whose body is there and empty. */
export const EMPTY_BODY: Buffer = Buffer.alloc(0);

/** How long a client may stop reading its answer before the connection is cut. */
const MAX_STALL_MS = 60_000;

/** Bytes of answers in memory that their clients have not taken yet; beyond it large answers are refused. */
const MAX_UNREAD_BYTES = 256 * 1024 * 1024;
const LARGE_BYTES = 64 * 1024;

/** What a responder needs. */
export interface ResponderOptions {
  readonly cors: CorsPolicy;
  readonly inFlight: InFlight;
  readonly clock: Clock;
}

/** Writes the head of every answer. Nothing else does. */
export class Responder {
  readonly #cors: CorsPolicy;
  readonly #inFlight: InFlight;
  readonly #clock: Clock;
  #unreadBytes = 0;
  /** Answers that wait for the others of this turn of the event loop. */
  #ending: [Exchange, Buffer | null][] = [];

  constructor({ cors, inFlight, clock }: ResponderOptions) {
    this.#cors = cors;
    this.#inFlight = inFlight;
    this.#clock = clock;
  }

  /**
   * Answers with `headers`, a flat list of names and values, and `body`; `null` where an answer has none (204, 304,
   * HEAD). Does nothing when nobody is left to answer.
   */
  send(exchange: Exchange, status: number, headers: readonly string[], body: Buffer | null): void {
    const { res } = exchange;
    const length = body?.length ?? 0;
    if (length > LARGE_BYTES && this.#unreadBytes + length > MAX_UNREAD_BYTES) {
      return this.refuse(exchange, problem("overloaded", { detail: "Too many bytes of answers wait for their readers." }));
    }
    this.#inFlight.end(exchange);
    if (res.destroyed) return;
    this.#begin(exchange, status, headers, body, false);
    if (exchange.arriving && length <= LARGE_BYTES && res instanceof PreparedResponse) this.#endSoon(exchange, body);
    else this.#end(exchange, body);
  }

  /**
   * Requests that arrive together, each answered at once, are answered together when all are handled: to handle them
   * and to write to their sockets in turn costs a fifth more.
   */
  #endSoon(exchange: Exchange, body: Buffer | null): void {
    if (this.#ending.push([exchange, body]) === 1) setImmediate(() => this.endWaiting());
  }

  /** Sends the answers that wait for the others of this turn: due before a connection ends that may have one of them. */
  endWaiting(): void {
    const ending = this.#ending;
    if (ending.length > 0) this.#ending = [];
    for (const [exchange, body] of ending) this.#end(exchange, body);
  }

  #end(exchange: Exchange, body: Buffer | null): void {
    const { req, res } = exchange;
    const length = body?.length ?? 0;
    if (body === null || length === 0) res.end();
    else if (res instanceof PreparedResponse) res.endWith(body);
    else res.end(body);
    if (req.socket.writableLength > 0) this.#watchUnread(exchange, length);
  }

  /** A client that reads slowly keeps its answer in memory: not for ever, and not more than all may together. */
  #watchUnread({ req, res }: Exchange, length: number): void {
    req.socket.setTimeout(MAX_STALL_MS);
    this.#unreadBytes += length;
    res.once("close", () => (this.#unreadBytes -= length));
  }

  /** Answers with a problem document. */
  refuse(exchange: Exchange, refusal: Problem): void {
    const { status } = PROBLEMS[refusal.code];
    const headers = problemHeaders(refusal);
    const body = problemBody(refusal);
    // Who waits to be told to continue may send its body all the same.
    if (exchange.bodyPending) this.#sendEarly(exchange, status, headers, body);
    else this.send(exchange, status, headers, body);
  }

  /** Answers a client that is still sending. */
  #sendEarly(exchange: Exchange, status: number, headers: readonly string[], body: Buffer): void {
    this.#inFlight.end(exchange);
    const { res } = exchange;
    if (res.destroyed) return;
    this.#begin(exchange, status, headers, body, true);
    res.write(body);
    linger(exchange, this.#clock);
  }

  #begin({ res, headers: { origin }, awaitsContinue }: Exchange, status: number, own: readonly string[], body: Buffer | null, isLast: boolean): void {
    const headers = isLast || this.#inFlight.closing ? [...own, "Connection", "close"] : own;
    const length = body?.length ?? null;
    const common = this.#cors.headersFor(origin);
    // In somebody else's server the answers are Node's own.
    if (res instanceof PreparedResponse && !awaitsContinue) res.writePrepared(status, common, headers, length);
    else res.writeHead(status, [...common.list, ...headers, ...lengthHeader(length)]);
  }

  /** Answers a browser that asks what it may send. */
  preflight(exchange: Exchange): void {
    this.send(exchange, 204, PREFLIGHT_HEADERS, null);
  }

  /** Tells a client that waits for it to send its body. */
  sendContinue(exchange: Exchange): void {
    exchange.awaitsContinue = false;
    exchange.res.writeContinue();
  }

  /** Begins an answer that lasts as long as its connection: what is written after it goes out as it is. */
  beginEndless(exchange: Exchange, headers: readonly string[]): void {
    const { res } = exchange;
    // Framed in chunks, a buffer could not be the same for all readers.
    res.removeHeader("Transfer-Encoding");
    this.#begin(exchange, 200, headers, null, true);
  }

  /** A whole answer for a connection on which there is no request: HTTP itself is broken there. */
  rawProblem(refusal: Problem): string {
    const { status } = PROBLEMS[refusal.code];
    const body = problemBody(refusal);
    const own = linesOf([...problemHeaders(refusal), "Content-Length", String(body.length), "Connection", "close"]);
    return `${statusLine(status)}${this.#cors.headersFor(null).text}${own}\r\n${body.toString()}`;
  }
}
