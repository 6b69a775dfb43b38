import { STATUS_CODES } from "node:http";
import type { Clock } from "../ops/clock.js";
import { PREFLIGHT_HEADERS, type CorsPolicy } from "./cors.js";
import type { Exchange } from "./exchange.js";
import type { InFlight } from "./in-flight.js";
import { linger } from "./linger.js";
import { problemBody, problemHeaders, PROBLEMS, type Problem } from "./problems.js";

/** An answer whose body is there and empty. */
export const EMPTY_BODY: Buffer = Buffer.alloc(0);

const CLOSE = ["Connection", "close"];

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
    this.#inFlight.end(exchange);
    const { res } = exchange;
    if (res.destroyed) return;
    const head = [...this.#cors.headersFor(exchange.headers.origin), ...headers];
    if (body !== null) head.push("Content-Length", String(body.length));
    if (this.#inFlight.closing) head.push(...CLOSE);
    res.writeHead(status, head);
    if (body === null || body.length === 0) res.end();
    else res.end(body);
  }

  /** Answers with a problem document. */
  refuse(exchange: Exchange, refusal: Problem): void {
    const { status } = PROBLEMS[refusal.code];
    const headers = problemHeaders(refusal);
    const body = problemBody(refusal);
    if (exchange.bodyPending) this.#sendEarly(exchange, status, headers, body);
    else this.send(exchange, status, headers, body);
  }

  /** Answers before the body has been read: the connection can't be used again. */
  #sendEarly(exchange: Exchange, status: number, headers: readonly string[], body: Buffer): void {
    const { res } = exchange;
    const early = [...headers, ...CLOSE];
    // A client that waits to be told to continue has sent nothing that would have to be read.
    if (exchange.awaitsContinue) return this.send(exchange, status, early, body);
    this.#inFlight.end(exchange);
    if (res.destroyed) return;
    res.writeHead(status, [...this.#cors.headersFor(exchange.headers.origin), ...early, "Content-Length", String(body.length)]);
    res.write(body);
    linger(exchange, this.#clock);
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
    res.writeHead(200, [...this.#cors.headersFor(exchange.headers.origin), ...headers, ...CLOSE]);
  }

  /** A whole answer for a connection on which there is no request: HTTP itself is broken there. */
  rawProblem(refusal: Problem): string {
    const { status } = PROBLEMS[refusal.code];
    const body = problemBody(refusal);
    const headers = [...this.#cors.headersFor(null), ...problemHeaders(refusal), ...CLOSE, "Content-Length", String(body.length)];
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`;
    for (let at = 0; at < headers.length; at += 2) head += `${headers[at] ?? ""}: ${headers[at + 1] ?? ""}\r\n`;
    return `${head}\r\n${body.toString()}`;
  }
}
