// Warns of requests that took long.

import { REQUEST_KINDS } from "../../metrics/request-figures.js";
import type { Log } from "../../ops/log.js";
import type { Exchange } from "../exchange/exchange.js";

/** A request that took longer is slow. A live read's wait does not count. */
const SLOW_REQUEST_MS = 1000;
/** The shortest time between two warnings. */
const PAUSE_MS = 1000;

/** Logs slow requests, at most one a second: when all are slow, the log must not make it worse. */
export class SlowRequests {
  readonly #log: Log;
  #lastMs = -Infinity;
  #unsaid = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** A request was answered after `tookMs`, at `nowMs` of the clock that this was measured with. */
  note(exchange: Exchange, tookMs: number, nowMs: number): void {
    if (tookMs <= SLOW_REQUEST_MS) return;
    if (nowMs - this.#lastMs < PAUSE_MS) {
      this.#unsaid += 1;
      return;
    }
    const { requestId, name, target, kind, status, receivedBytes, sentBytes } = exchange;
    this.#log.warn("a request was slow", {
      ...(requestId === null ? {} : { id: requestId }),
      op: REQUEST_KINDS[kind] ?? "other",
      ...(name === null ? { path: target.path } : { stream: name }),
      status,
      bytesIn: receivedBytes,
      bytesOut: sentBytes,
      ms: Math.round(tookMs),
      ...(this.#unsaid === 0 ? {} : { others: this.#unsaid }),
    });
    this.#lastMs = nowMs;
    this.#unsaid = 0;
  }
}
