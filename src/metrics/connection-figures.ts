// Counts the connections of a server.

import type { Sample } from "./exposition.js";

/** Whose connections are too many. */
export type Crowd = "all" | "client";

/**
 * Why no TLS came about: the client asked in plain HTTP; it left, or took too long; it and the server agreed on
 * nothing, or one did not believe the other; its certificate is none of a known authority.
 */
export type TlsFailure = "plain" | "left" | "handshake" | "certificate";

/** The connections of the addresses with streams, as they are now, and those that were turned away since the start. */
export class ConnectionFigures {
  /** Those that are served. */
  open = 0;
  /** When the certificate in use ends; `null` without TLS of its own. */
  certificateEndsAtMs: number | null = null;
  /** Whether the files of TLS hold as they were read last; `null` without. */
  isTlsCurrent: boolean | null = null;
  /** How many may be served at a time; `null` where somebody else's server listens. */
  limit: number | null = null;
  readonly #refused: Record<Crowd, number> = { all: 0, client: 0 };
  readonly #failed: Record<TlsFailure, number> = { plain: 0, left: 0, handshake: 0, certificate: 0 };

  /** A connection was one too many. */
  refused(crowd: Crowd): void {
    this.#refused[crowd] += 1;
  }

  /** Those that were turned away, by whose limit. */
  refusals(): readonly Sample[] {
    return Object.entries(this.#refused).map(([limit, value]) => ({ labels: { limit }, value }));
  }

  /** A connection became none of TLS. */
  tlsFailed(reason: TlsFailure): void {
    this.#failed[reason] += 1;
  }

  /** Those that became none of TLS, by why. */
  tlsFailures(): readonly Sample[] {
    return Object.entries(this.#failed).map(([reason, value]) => ({ labels: { reason }, value }));
  }
}
