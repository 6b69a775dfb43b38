// Writes the head of every answer, and sends what follows it.

import { ServerResponse } from "node:http";
import type { Clock } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import { KIND } from "../../metrics/request-figures.js";
import { PREFLIGHT_HEADERS, type CorsPolicy } from "../encoding/cors.js";
import type { DirectConnection } from "../node/direct-connection.js";
import type { Exchange } from "../exchange/exchange.js";
import { logFault } from "../exchange/fault.js";
import { ClosingLines, lengthHeader, type CommonHeaders, linesOf, statusLine } from "../encoding/head.js";
import type { InFlight } from "./in-flight.js";
import { linger } from "./linger.js";
import { problem, problemBody, problemHeaders, PROBLEMS, type Problem } from "../encoding/problems.js";
import { StreamAnswer } from "../http2/stream-answer.js";
import { SMALL_ANSWER_BYTES, type UnreadAnswers } from "../bounds/unread.js";

/** A body that exists and is empty. */
export const EMPTY_BODY: Buffer = Buffer.alloc(0);

/**
 * Up to this size it pays to copy a body into one string with its head; a socket writes up to 16 KiB without another
 * copy.
 */
const MAX_JOINED_BYTES = 8 * 1024;

/** The options of a responder. */
export interface ResponderOptions {
  readonly cors: CorsPolicy;
  readonly inFlight: InFlight;
  readonly unread: UnreadAnswers;
  readonly clock: Clock;
  readonly log: Log;
}

/** An answer that has been decided. */
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
  readonly #unread: UnreadAnswers;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #closingLines = new ClosingLines();
  /** Answers that are sent together at the end of this turn of the event loop. */
  #waiting: Answer[] = [];

  constructor({ cors, inFlight, unread, clock, log }: ResponderOptions) {
    this.#cors = cors;
    this.#inFlight = inFlight;
    this.#unread = unread;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Answers with `headers`, a flat list of names and values, and `body`; `null` where an answer has none (204, 304,
   * HEAD). Does nothing when nobody is left to answer.
   */
  send(exchange: Exchange, status: number, headers: readonly string[], body: Buffer | null): void {
    // Nobody's answer gives way to one for a client that has gone.
    if (body !== null && !exchange.isGone && !this.#unread.admits(body, exchange)) {
      return this.refuse(
        exchange,
        problem("overloaded", { detail: "Too many bytes of answers wait for their readers." }),
      );
    }
    if (body !== null) exchange.account?.charge(body.length);
    exchange.status = status;
    this.#ends(exchange, headers, body);
    if (exchange.isGone) return;
    exchange.decide();
    const answer = { exchange, status, headers, body };
    // A larger one does not wait: it counts as unread before the next one is made.
    const isSmall = body === null || body.length <= SMALL_ANSWER_BYTES;
    if (exchange.arriving && isSmall && exchange.isOwn) this.#answerSoon(answer);
    else this.#give(answer);
  }

  #ends(exchange: Exchange, headers: readonly string[], body: Buffer | null): void {
    this.#inFlight.sent(exchange, body);
    if (exchange.idStart !== null) exchange.nextOffset = valueOf(headers, "Stream-Next-Offset");
    this.#inFlight.end(exchange);
  }

  /**
   * Requests that arrive together, each answered at once, are answered together when all are handled: alternating
   * between handling and writing costs a fifth more.
   */
  #answerSoon(answer: Answer): void {
    if (this.#waiting.push(answer) === 1) setImmediate(() => this.answerWaiting());
  }

  /**
   * Sends the answers that wait for the end of this turn. Call it before ending a connection that may have one of them.
   */
  answerWaiting(): void {
    const waiting = this.#waiting;
    if (waiting.length > 0) this.#waiting = [];
    for (const answer of waiting) this.#give(answer);
  }

  /** A fault in one answer affects only its own request: the others are still sent. */
  #give(answer: Answer): void {
    try {
      this.#answer(answer);
    } catch (fault) {
      this.#replace(answer.exchange, fault);
    }
  }

  /**
   * Answers 500 in place of an answer that failed; where some of it was sent already, or the 500 fails too, cuts the
   * connection.
   */
  #replace(exchange: Exchange, fault: unknown): void {
    logFault(this.#log, exchange, fault);
    this.#inFlight.fails(exchange);
    if (exchange.isOut) return void exchange.req.socket.destroy();
    const refusal = problem("internal-error");
    try {
      this.#answer({
        exchange,
        status: PROBLEMS[refusal.code].status,
        headers: problemHeaders(refusal),
        body: problemBody(refusal),
      });
    } catch (second) {
      logFault(this.#log, exchange, second);
      exchange.req.socket.destroy();
    }
  }

  #answer(answer: Answer): void {
    const { exchange, status, headers, body } = answer;
    const length = body?.length ?? 0;
    const { direct } = exchange;
    // Otherwise Node would still handle a body that nobody reads.
    if (direct !== null && length <= MAX_JOINED_BYTES && !exchange.bodyPending && !this.#inFlight.leaving)
      return this.#answerDirectly(direct, answer);
    this.#begin(exchange, status, headers, body, false);
    const { req, res } = exchange;
    res.end(body !== null && length > 0 ? body : undefined);
    // A client of HTTP/2 may leave its answer for as long as it likes: what it has sent is not kept for it.
    if (exchange.isOwn) exchange.forgetSentHeaders();
    if (req.socket.writableLength === 0) return;
    // A slow client keeps its answer in memory, so that memory is bounded, in time and in total.
    const unread = this.#unread.add(exchange, body ?? 0);
    res.once("close", () => unread.release());
  }

  /** As one text: a small body is worth the copies. */
  #answerDirectly(direct: DirectConnection, { exchange, status, headers, body }: Answer): void {
    const common = this.#commonOf(exchange);
    const own = common.joinVary(headers);
    let text = (own === headers ? common : common.unvaried).openingOf(status) + linesOf(own);
    if (body !== null) text += `Content-Length: ${body.length}\r\n`;
    const { idStart, idNumber } = exchange;
    const nowMs = this.#clock.nowMs();
    text += idStart === null ? this.#closingLines.at(nowMs) : this.#closingLines.withId(idStart, idNumber, nowMs);
    if (body !== null && body.length > 0 && exchange.req.method !== "HEAD") text += body.toString("latin1");
    if (direct.answer(exchange, text, nowMs)) return;
    const unread = this.#unread.add(exchange, text.length);
    direct.whenTaken(() => unread.release());
  }

  /** Answers with a problem document. */
  refuse(exchange: Exchange, refusal: Problem): void {
    const { status } = PROBLEMS[refusal.code];
    exchange.status = status;
    exchange.code = refusal.code;
    const headers = problemHeaders(refusal);
    const body = problemBody(refusal);
    // A client that waits for `100 Continue` may send its body all the same.
    if (exchange.bodyPending) this.#sendEarly(exchange, status, headers, body);
    else this.send(exchange, status, headers, body);
  }

  /** Answers a client that is still sending. */
  #sendEarly(exchange: Exchange, status: number, headers: readonly string[], body: Buffer): void {
    this.#ends(exchange, headers, body);
    if (exchange.isGone) return;
    this.#begin(exchange, status, headers, body, true);
    // Its client may take its time with the rest of the body.
    exchange.forgetSentHeaders();
    const { res } = exchange;
    if (res instanceof StreamAnswer) return res.endEarly(body);
    res.write(body);
    // To a HEAD nothing is written, and Node would keep the head until the answer ends, which may be never.
    if (exchange.req.method === "HEAD" && res instanceof ServerResponse) res.flushHeaders();
    linger(exchange, this.#clock);
  }

  #begin(exchange: Exchange, status: number, given: readonly string[], body: Buffer | null, isLast: boolean): void {
    const common = this.#commonOf(exchange);
    const own = common.joinVary(given);
    const { list } = own === given ? common : common.unvaried;
    exchange.decide();
    const { res } = exchange;
    if (isLast || exchange.isLast || this.#inFlight.leaving) res.shouldKeepAlive = false;
    const { requestId } = exchange;
    const id = requestId === null ? [] : ["X-Request-Id", requestId];
    const headers = [...list, ...own, ...id, ...lengthHeader(body?.length ?? null)];
    if (!exchange.isOwn && res instanceof ServerResponse) writeHostHead(res, status, headers);
    else res.writeHead(status, headers);
  }

  #commonOf({ commonHeaders, headers }: Exchange): CommonHeaders {
    return commonHeaders ?? this.#cors.headersFor(headers);
  }

  /** Answers a browser that asks what it may send. */
  preflight(exchange: Exchange): void {
    exchange.kind = KIND.preflight;
    this.send(exchange, 204, PREFLIGHT_HEADERS, null);
  }

  /** Asks a client that waits for `100 Continue` to send its body. */
  sendContinue(exchange: Exchange): void {
    exchange.awaitsContinue = false;
    exchange.res.writeContinue();
  }

  /**
   * Begins an answer whose end is not known, and with which its connection ends. Over HTTP/1.1 it is sent in chunks:
   * some clients wait for more bytes than there are where an answer has none.
   */
  beginEndless(exchange: Exchange, headers: readonly string[]): void {
    this.#begin(exchange, 200, headers, null, true);
    exchange.status = 200;
    this.#inFlight.waits(exchange);
  }

  /** A complete answer for a connection without a valid request. */
  rawProblem(refusal: Problem): string {
    const { status } = PROBLEMS[refusal.code];
    const body = problemBody(refusal);
    const own = linesOf([...problemHeaders(refusal), "Content-Length", String(body.length), "Connection", "close"]);
    return `${statusLine(status)}${this.#cors.forAnyone.text}${own}\r\n${body.toString()}`;
  }

  /** The same for what is no valid request, which is counted; `isKnown` where its head was one, and its body is not. */
  rawRefusal(refusal: Problem, isKnown: boolean): string {
    this.#inFlight.broke(refusal.code, isKnown);
    return this.rawProblem(refusal);
  }
}

/**
 * Writes a head in somebody else's server, in place of the headers that this has set. One by one: common middleware
 * (`on-headers` before 1.1.0) takes a list that is passed to `writeHead` for one of pairs.
 */
function writeHostHead(res: ServerResponse, status: number, headers: readonly string[]): void {
  try {
    for (let at = 0; at + 1 < headers.length; at += 2) setHostHeader(res, headers[at] ?? "", headers[at + 1] ?? "");
    res.writeHead(status);
  } catch (fault) {
    // The answer that takes its place has others.
    if (!res.headersSent) for (let at = 0; at < headers.length; at += 2) res.removeHeader(headers[at] ?? "");
    throw fault;
  }
}

/** There may be several `Vary`; what the answer depends on for the server around, it still depends on. */
function setHostHeader(res: ServerResponse, name: string, value: string): void {
  if (name === "Vary") res.appendHeader(name, value);
  else res.setHeader(name, value);
}

/** The value of the header `name`, which is written as the handlers do; `null` without it. */
function valueOf(headers: readonly string[], name: string): string | null {
  const at = headers.indexOf(name);
  return at < 0 ? null : (headers[at + 1] ?? null);
}
