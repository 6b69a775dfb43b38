// Logs the life of each request, at the level debug.

import type { Clock } from "../../ops/clock.js";
import type { Log, LogFields } from "../../ops/log.js";
import { decodeName } from "../../protocol/names.js";
import type { ProblemCode } from "../encoding/problems.js";
import type { Exchange } from "../exchange/exchange.js";

/** A request in flight, and its answer as far as that is decided. */
interface Life {
  readonly beganAtMs: number;
  status: number | null;
  code: ProblemCode | null;
}

/** Logs a line when a request is over, and one when a live read begins: never a header's value or a body. */
export class RequestLog {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #prefix: string;
  readonly #lives = new WeakMap<Exchange, Life>();

  private constructor(log: Log, clock: Clock, prefix: string) {
    this.#log = log;
    this.#clock = clock;
    this.#prefix = prefix;
  }

  /** `null` where `log` keeps no debug messages: then requests cost nothing here. Streams are below `prefix`. */
  static of(log: Log, clock: Clock, prefix: string): RequestLog | null {
    return log.isDebug === true ? new RequestLog(log, clock, prefix) : null;
  }

  begin(exchange: Exchange): void {
    this.#lives.set(exchange, { beganAtMs: this.#clock.nowMs(), status: null, code: null });
  }

  /** A read has caught up and waits for more, or its endless answer has begun. */
  liveReadBegins(exchange: Exchange): void {
    this.#log.debug("live read begins", this.#nameOf(exchange));
  }

  /** Notes the status of the answer, and the code of a refusal. */
  note(exchange: Exchange, status: number, code: ProblemCode | null): void {
    const life = this.#lives.get(exchange);
    if (life !== undefined) Object.assign(life, { status, code: code ?? life.code });
  }

  /** The request is answered, or its client has gone. */
  end(exchange: Exchange): void {
    const life = this.#lives.get(exchange);
    if (life === undefined) return;
    const { status, code, beganAtMs } = life;
    const isLeft = status === null || exchange.isGone;
    this.#log.debug(isLeft ? "client left" : "request answered", {
      ...this.#nameOf(exchange),
      ...(status === null ? {} : { status }),
      ...(code === null ? {} : { code }),
      ms: this.#clock.nowMs() - beganAtMs,
    });
  }

  #nameOf({ req, target: { path } }: Exchange): LogFields {
    const decoded = path.startsWith(this.#prefix) ? decodeName(path.slice(this.#prefix.length)) : null;
    const place = decoded !== null && "name" in decoded ? { stream: decoded.name } : { path };
    return { method: req.method ?? "", ...place };
  }
}
