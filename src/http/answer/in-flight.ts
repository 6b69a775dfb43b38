import type { Exchange } from "../exchange/exchange.js";
import type { RequestLog } from "./request-log.js";

/** The requests that have no answer yet. */
export class InFlight {
  /** Logs what becomes of them; `null` when nobody wants to know. */
  readonly requestLog: RequestLog | null;
  /**
   * Each knows its slot. A Set would do, but V8 keeps its outgrown tables linked: with a request added and deleted all
   * the time, one old table holds every later request until the next full collection.
   */
  readonly #exchanges: Exchange[] = [];
  #closing = false;
  #onEmpty: (() => void) | null = null;

  constructor(requestLog: RequestLog | null = null) {
    this.requestLog = requestLog;
  }

  /** Requests without an answer. */
  get size(): number {
    return this.#exchanges.length;
  }

  /** Whether the server is stopping: new requests are refused. */
  get closing(): boolean {
    return this.#closing;
  }

  /** Adds a request. */
  begin(exchange: Exchange): void {
    exchange.slot = this.#exchanges.push(exchange) - 1;
    this.requestLog?.begin(exchange);
  }

  /** Removes a request that has its answer, or whose client has gone. A second call does nothing. */
  end(exchange: Exchange): void {
    if (exchange.slot < 0) return;
    this.#vacate(exchange.slot);
    exchange.slot = -1;
    this.requestLog?.end(exchange);
    exchange.body?.release();
    exchange.body = null;
    exchange.standing?.release();
    exchange.onLeave?.();
    exchange.onLeave = null;
    if (this.#exchanges.length === 0) this.#onEmpty?.();
  }

  /** Refuses requests from now on. Resolves when all earlier ones have their answers. */
  close(): Promise<void> {
    this.#closing = true;
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
