// Limits the connections of each client.

import type { Socket } from "node:net";
import { clientAddressOf } from "./client-address.js";
import type { Clients } from "./clients.js";

/** Counts the connections of each address. Those of trusted proxies, and of Unix sockets, are not limited. */
export class ConnectionsByClient {
  readonly #max: number;
  readonly #clients: Clients;
  /** Only of clients that have some. */
  readonly #counts = new Map<string, number>();

  /** `max` is for each client; `Infinity` is no limit. */
  constructor(max: number, clients: Clients) {
    this.#max = max;
    this.#clients = clients;
  }

  /** Clients that have connections, as far as they are counted. */
  get size(): number {
    return this.#counts.size;
  }

  /** Whether a connection is within its client's limit; it is counted until it closes. */
  admit(socket: Socket): boolean {
    if (this.#max === Infinity || socket.remoteAddress === undefined || this.#clients.isTrusted(socket)) return true;
    const client = clientAddressOf(socket);
    const count = this.#counts.get(client) ?? 0;
    if (count >= this.#max) return false;
    this.#counts.set(client, count + 1);
    socket.on("close", () => this.#left(client));
    return true;
  }

  #left(client: string): void {
    const count = this.#counts.get(client) ?? 0;
    if (count > 1) this.#counts.set(client, count - 1);
    else this.#counts.delete(client);
  }
}
