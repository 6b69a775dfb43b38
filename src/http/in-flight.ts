import type { Exchange } from "./exchange.js";

/** The requests that have no answer yet, and how much memory their bodies take. */
export class InFlight {
  readonly #maxBodyBytes: number;
  readonly #exchanges = new Set<Exchange>();
  #bodyBytes = 0;
  #closing = false;
  #onEmpty: (() => void) | null = null;

  /** `maxBodyBytes` bounds the bodies of all requests together. */
  constructor(maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes;
  }

  /** Requests without an answer. */
  get size(): number {
    return this.#exchanges.size;
  }

  /** Bytes of bodies in memory. */
  get bodyBytes(): number {
    return this.#bodyBytes;
  }

  /** Whether the server is on its way to stop: no request is taken any more. */
  get closing(): boolean {
    return this.#closing;
  }

  /** A request has come. */
  begin(exchange: Exchange): void {
    this.#exchanges.add(exchange);
  }

  /** A request has its answer, or nobody waits for one any more. A second call does nothing. */
  end(exchange: Exchange): void {
    if (!this.#exchanges.delete(exchange)) return;
    this.#bodyBytes -= exchange.heldBytes;
    exchange.heldBytes = 0;
    if (this.#exchanges.size === 0) this.#onEmpty?.();
  }

  /** Counts `bytes` more of a request's body; false when the bodies would take too much memory. */
  hold(exchange: Exchange, bytes: number): boolean {
    if (this.#bodyBytes + bytes > this.#maxBodyBytes) return false;
    this.#bodyBytes += bytes;
    exchange.heldBytes += bytes;
    return true;
  }

  /** From now on no request is taken. Resolves when those that came before have their answers. */
  close(): Promise<void> {
    this.#closing = true;
    if (this.#exchanges.size === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#onEmpty = resolve));
  }

  /** Cuts the connections of all requests that have no answer. */
  destroyAll(): void {
    for (const exchange of this.#exchanges) exchange.req.socket.destroy();
  }
}
