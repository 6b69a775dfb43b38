// Logs the life of each request, at the level debug.

import type { Log, LogFields } from "../../ops/log.js";
import { decodeName } from "../../protocol/names/stream-name.js";
import type { Exchange } from "../exchange/exchange.js";

/** Logs a line when a request is over, and one when a live read begins: never a header's value or a body. */
export class RequestLog {
  readonly #log: Log;
  readonly #prefix: string;

  private constructor(log: Log, prefix: string) {
    this.#log = log;
    this.#prefix = prefix;
  }

  /** `null` where `log` keeps no debug messages: then requests cost nothing here. Streams are below `prefix`. */
  static of(log: Log, prefix: string): RequestLog | null {
    return log.isDebug === true ? new RequestLog(log, prefix) : null;
  }

  /** A read has caught up and waits for more, or its endless answer has begun. */
  liveReadBegins(exchange: Exchange): void {
    this.#log.debug("live read begins", this.#nameOf(exchange));
  }

  /** The request is answered after `tookMs`, or its client has gone. */
  end(exchange: Exchange, tookMs: number): void {
    const { status, code } = exchange;
    const isLeft = status === 0 || exchange.isGone;
    this.#log.debug(isLeft ? "client left" : "request answered", {
      ...this.#nameOf(exchange),
      ...(status === 0 ? {} : { status }),
      ...(code === null ? {} : { code }),
      ms: Math.round(tookMs),
    });
  }

  #nameOf({ req, target: { path } }: Exchange): LogFields {
    const decoded = path.startsWith(this.#prefix) ? decodeName(path.slice(this.#prefix.length)) : null;
    const place = decoded !== null && "name" in decoded ? { stream: decoded.name } : { path };
    return { method: req.method ?? "", ...place };
  }
}
