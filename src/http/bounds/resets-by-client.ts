import type { ClientResets, Origin } from "../http2/reset-budget.js";
import { clientAddressOf } from "./client-address.js";
import type { Clients } from "./clients.js";
import { RateLimiter } from "./rate-limiter.js";

/** How many streams of HTTP/2 a client may break off in a second on all its connections. */
const MAX_CLIENT_RESETS = 1024;

/** Counts the streams that are reset by client, as a new connection costs little. Trusted proxies are not counted. */
export class ResetsByClient implements ClientResets {
  readonly #clients: Pick<Clients, "isTrusted">;
  readonly #limiter = new RateLimiter({ requests: MAX_CLIENT_RESETS, bytes: null });

  constructor(clients: Pick<Clients, "isTrusted">) {
    this.#clients = clients;
  }

  /** The client that a connection counts for; `null` for a trusted proxy, which has many. */
  clientOf(connection: Origin): string | null {
    return this.#clients.isTrusted(connection) ? null : clientAddressOf(connection);
  }

  /** Counts one; false once a client has had too many. */
  spend(client: string | null, nowMs: number): boolean {
    return client === null || this.#limiter.admit(client, null, nowMs) === 0;
  }
}
