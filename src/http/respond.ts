import type { Clock } from "../ops/clock.js";
import { PREFLIGHT_HEADERS, type CorsPolicy } from "./cors.js";
import type { DirectConnection } from "./direct-connection.js";
import type { Exchange } from "./exchange.js";
import { ClosingLines, lengthHeader, linesOf, statusLine } from "./head.js";
import type { InFlight } from "./in-flight.js";
import { linger } from "./linger.js";
import { problem, problemBody, problemHeaders, PROBLEMS, type Problem } from "./problems.js";

/** An answer whose body is there and empty. */
export const EMPTY_BODY: Buffer = Buffer.alloc(0);

/** How long a client may stop reading its answer before the connection is cut. */
const MAX_STALL_MS = 60_000;

/** Bytes of answers in memory that their clients have not taken yet; beyond it large answers are refused. */
const MAX_UNREAD_BYTES = 256 * 1024 * 1024;
const LARGE_BYTES = 64 * 1024;

/** A body up to this size is worth the copies of being one text with its head; a socket writes up to 16 KiB without another. */
const MAX_JOINED_BYTES = 8 * 1024;

/** What a responder needs. */
export interface ResponderOptions {
  readonly cors: CorsPolicy;
  readonly inFlight: InFlight;
  readonly clock: Clock;
}

/** An answer that is decided on. */
interface Answer {
  readonly exchange: Exchange;
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Buffer | null;
}

/** Writes the head of every answer. Nothing else does. */
export class Responder {
  readonly #cors: CorsPolicy;
  readonly #inFlight: InFlight;
  readonly #clock: Clock;
  readonly #closingLines = new ClosingLines();
  #unreadBytes = 0;
  /** Answers that wait for the others of this turn of the event loop. */
  #waiting: Answer[] = [];

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
    const length = body?.length ?? 0;
    if (length > LARGE_BYTES && this.#unreadBytes + length > MAX_UNREAD_BYTES) {
      return this.refuse(exchange, problem("overloaded", { detail: "Too many bytes of answers wait for their readers." }));
    }
    this.#inFlight.end(exchange);
    if (exchange.isGone) return;
    exchange.decide();
    const answer = { exchange, status, headers, body };
    if (exchange.arriving && length <= LARGE_BYTES && exchange.isOwn) this.#answerSoon(answer);
    else this.#answer(answer);
  }

  /**
   * Requests that arrive together, each answered at once, are answered together when all are handled: to handle them
   * and to write to their sockets in turn costs a fifth more.
   */
  #answerSoon(answer: Answer): void {
    if (this.#waiting.push(answer) === 1) setImmediate(() => this.answerWaiting());
  }

  /** Sends the answers that wait for the others of this turn: due before a connection ends that may have one of them. */
  answerWaiting(): void {
    const waiting = this.#waiting;
    if (waiting.length > 0) this.#waiting = [];
    for (const answer of waiting) this.#answer(answer);
  }

  #answer(answer: Answer): void {
    const { exchange, status, headers, body } = answer;
    const length = body?.length ?? 0;
    const { direct } = exchange;
    // Of a body that nobody reads Node would still take care.
    if (direct !== null && length <= MAX_JOINED_BYTES && !exchange.bodyPending && !this.#inFlight.closing) return this.#answerDirectly(direct, answer);
    this.#begin(exchange, status, headers, body, false);
    const { req, res } = exchange;
    res.end(length > 0 ? body : undefined);
    if (req.socket.writableLength === 0) return;
    // A client that reads slowly keeps its answer in memory: not for ever, and not more than all may together.
    req.socket.setTimeout(MAX_STALL_MS);
    this.#unreadBytes += length;
    res.once("close", () => (this.#unreadBytes -= length));
  }

  /** As one text: a small body is worth the copies. */
  #answerDirectly(direct: DirectConnection, { exchange, status, headers, body }: Answer): void {
    let text = this.#cors.headersFor(exchange.headers.origin).openingOf(status) + linesOf(headers);
    if (body !== null) text += `Content-Length: ${body.length}\r\n`;
    text += this.#closingLines.at(this.#clock.nowMs());
    if (body !== null && body.length > 0 && exchange.req.method !== "HEAD") text += body.toString("latin1");
    if (direct.answer(exchange, text)) return;
    const { length } = text;
    this.#unreadBytes += length;
    direct.whenTaken(MAX_STALL_MS, () => (this.#unreadBytes -= length));
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
    if (exchange.isGone) return;
    this.#begin(exchange, status, headers, body, true);
    exchange.res.write(body);
    linger(exchange, this.#clock);
  }

  #begin(exchange: Exchange, status: number, own: readonly string[], body: Buffer | null, isLast: boolean): void {
    const { list } = this.#cors.headersFor(exchange.headers.origin);
    exchange.decide();
    const { res } = exchange;
    if (isLast || exchange.isLast || this.#inFlight.closing) res.shouldKeepAlive = false;
    res.writeHead(status, [...list, ...own, ...lengthHeader(body?.length ?? null)]);
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
