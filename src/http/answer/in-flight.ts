import { stopwatchMs } from "../../ops/clock.js";
import type { Exchange } from "../exchange/exchange.js";
import { PROBLEMS, type ProblemCode } from "../encoding/problems.js";
import { KIND, RequestFigures } from "../../metrics/request-figures.js";
import type { AccessLog } from "./access-log.js";
import type { RequestLog } from "./request-log.js";
import type { SlowRequests } from "./slow-requests.js";

const FAULT = "internal-error";

/** Who is told of requests; what is left out is not. */
export interface InFlightOptions {
  /** Logs what becomes of them; `null` when nobody wants to know. */
  readonly requestLog?: RequestLog | null;
  /** Names them, and writes a line for each; `null` without one. */
  readonly accessLog?: AccessLog | null;
  readonly slowRequests?: SlowRequests | null;
  /** A clock with fractions of a millisecond that never goes back. */
  readonly nowMs?: () => number;
}

/** The requests that have no answer yet. */
export class InFlight {
  readonly figures = new RequestFigures();
  readonly #requestLog: RequestLog | null;
  readonly #accessLog: AccessLog | null;
  readonly #slowRequests: SlowRequests | null;
  readonly #nowMs: () => number;
  /**
   * Each knows its slot. A Set would do, but V8 keeps its outgrown tables linked: with a request added and deleted all
   * the time, one old table holds every later request until the next full collection.
   */
  readonly #exchanges: Exchange[] = [];
  #phase: "serving" | "leaving" | "draining" | "over" = "serving";
  #onEmpty: (() => void) | null = null;

  constructor({ requestLog = null, accessLog = null, slowRequests = null, nowMs = stopwatchMs }: InFlightOptions = {}) {
    this.#accessLog = accessLog;
    this.#slowRequests = slowRequests;
    this.#requestLog = requestLog;
    this.#nowMs = nowMs;
  }

  /** Requests without an answer. */
  get size(): number {
    return this.#exchanges.length;
  }

  /** Whether the server is about to stop: it serves, and each answer is its connection's last. */
  get leaving(): boolean {
    return this.#phase !== "serving";
  }

  /** The server is about to stop. */
  leave(): void {
    if (this.#phase === "serving") this.#phase = "leaving";
  }

  /** Whether the server is stopping: what has reached it is answered, and nothing waits. */
  get closing(): boolean {
    return this.#phase === "draining" || this.#phase === "over";
  }

  /** Whether new requests are refused. */
  get over(): boolean {
    return this.#phase === "over";
  }

  /** Adds a request. */
  begin(exchange: Exchange): void {
    exchange.slot = this.#exchanges.push(exchange) - 1;
    exchange.beganAtMs = this.#nowMs();
    this.#accessLog?.name(exchange);
  }

  /** A live read has caught up and waits for more, or its endless answer has begun. */
  waits(exchange: Exchange): void {
    exchange.isWaiting = true;
    const nowMs = this.#nowMs();
    const tookMs = nowMs - exchange.beganAtMs;
    this.figures.took(exchange.kind, tookMs / 1000);
    this.#accessLog?.began(exchange, tookMs, nowMs);
    this.#requestLog?.liveReadBegins(exchange);
  }

  /** A body, or events, go to the client. */
  sent(exchange: Exchange, body: Buffer | null): void {
    if (body === null || exchange.req.method === "HEAD") return;
    this.figures.sentBytes += body.length;
    exchange.sentBytes += body.length;
  }

  /** A fault of the server has ended an answer that had begun. */
  fails(exchange: Exchange): void {
    if (exchange.slot < 0) this.figures.refused(FAULT);
    else exchange.code = FAULT;
  }

  /** What could not be read as a request was refused; `isKnown` where its head could, and is counted by itself. */
  broke(code: ProblemCode, isKnown: boolean): void {
    this.figures.refused(code);
    if (!isKnown) this.figures.answered(KIND.other, PROBLEMS[code].status);
  }

  /** Removes a request that has its answer, or whose client has gone. A second call does nothing. */
  end(exchange: Exchange): void {
    if (exchange.slot < 0) return;
    this.#vacate(exchange.slot);
    exchange.slot = -1;
    this.#count(exchange);
    exchange.body?.release();
    exchange.body = null;
    exchange.releaseRight();
    exchange.onLeave?.();
    exchange.onLeave = null;
    if (this.#exchanges.length === 0) this.#onEmpty?.();
  }

  #count(exchange: Exchange): void {
    const { kind, status, code, isWaiting } = exchange;
    const nowMs = this.#nowMs();
    const tookMs = nowMs - exchange.beganAtMs;
    this.figures.answered(kind, status);
    if (code !== null) this.figures.refused(code);
    // Whoever left early says nothing of how long an answer takes.
    if (!isWaiting && status !== 0) {
      this.figures.took(kind, tookMs / 1000);
      this.#slowRequests?.note(exchange, tookMs, nowMs);
    }
    this.#accessLog?.ended(exchange, tookMs, nowMs);
    this.#requestLog?.end(exchange, tookMs);
  }

  /** Refuses requests from now on. */
  refuseAll(): void {
    this.#phase = "over";
  }

  /** Resolves when all requests have their answers. */
  drain(): Promise<void> {
    if (this.#phase !== "over") this.#phase = "draining";
    if (this.#exchanges.length === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#onEmpty = resolve));
  }

  /** Moves the last one to `slot`. */
  #vacate(slot: number): void {
    const last = this.#exchanges.pop();
    if (last === undefined || last.slot === slot) return;
    last.slot = slot;
    this.#exchanges[slot] = last;
  }

  /** Cuts the connections of all requests that have no answer. */
  destroyAll(): void {
    for (const exchange of [...this.#exchanges]) exchange.req.socket.destroy();
  }
}
