import type { Line } from "../node/message.js";

/** How many streams a client may break off on one connection: at once, and for each second after that. */
const MAX_RESETS = 512;
const RESETS_PER_SECOND = 32;
/** How many on each connection do not count for that: a connection that breaks off little does not pay for others. */
const MAX_OWN_RESETS = 32;

/** What of a connection tells which client it counts for. */
export type Origin = Pick<Line, "remoteAddress" | "localAddress" | "destroyed">;

/** Counts the streams that are reset by client, over all its connections. */
export interface ClientResets {
  /** The client that a connection counts for; `null` for one that counts by itself alone. */
  clientOf(connection: Origin): string | null;
  /** Counts one; false once a client has had too many. */
  spend(client: string | null, nowMs: number): boolean;
}

/**
 * Counts the streams of one connection that are reset. Each costs the server a request and the client a few bytes, and
 * does not count for the most that may be open at a time ("rapid reset", CVE-2023-44487). A client that makes the
 * server reset them counts as well. The library below has such a limit too; but once it has said goodbye, Node reads no
 * more of the connection and leaves it open.
 */
export class ResetBudget {
  readonly #resets: ClientResets;
  readonly #client: string | null;
  #left = MAX_RESETS;
  #atMs: number;

  constructor(resets: ClientResets, connection: Origin, nowMs: number) {
    this.#resets = resets;
    this.#client = resets.clientOf(connection);
    this.#atMs = nowMs;
  }

  /** Whether there have been so many lately that they count for the client. */
  get hasMany(): boolean {
    return this.#left < MAX_RESETS - MAX_OWN_RESETS;
  }

  /** Counts some; false once there have been too many on this connection, or on all of the client. */
  spend(nowMs: number, count = 1): boolean {
    const seconds = Math.max(0, nowMs - this.#atMs) / 1000;
    this.#left = Math.min(MAX_RESETS, this.#left + seconds * RESETS_PER_SECOND);
    this.#atMs = nowMs;
    for (let rest = count; rest > 0; rest -= 1) {
      this.#left -= 1;
      if (this.#left < 0) return false;
      if (this.hasMany && !this.#resets.spend(this.#client, nowMs)) return false;
    }
    return true;
  }
}
