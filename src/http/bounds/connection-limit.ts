// Limits the connections of a server, so that its files keep enough descriptors.

import type { Socket } from "node:net";
import type { ConnectionFigures, Crowd } from "../../metrics/connection-figures.js";
import type { Log } from "../../ops/log.js";
import type { ConnectionsByClient } from "./connections-by-client.js";

/**
 * Descriptors reserved for files where the process may open many: 256 for segments, and 64 for the journal and for
 * streams being opened.
 */
const FILES = 320;
/** Refused connections that may be open at the same time. */
const TURNED_AWAY_AT_ONCE = 16;

/** How many connections a server takes. */
export interface ConnectionLimit {
  /** The most that are served. */
  readonly served: number;
  /** The most that are turned away at the same time. */
  readonly turnedAway: number;
}

/**
 * How many connections leave enough of `freeDescriptors` (what the process may still open) to the files: idle clients
 * must not keep the server from its own files. Where there are few, half of them go to connections. At most
 * `maxConnections` are served in any case.
 */
export function connectionLimitFor(freeDescriptors: number, maxConnections = Infinity): ConnectionLimit {
  if (freeDescriptors === Infinity) return { served: maxConnections, turnedAway: TURNED_AWAY_AT_ONCE };
  const open = Math.max(2, freeDescriptors - Math.min(Math.floor(freeDescriptors / 2), FILES));
  const turnedAway = Math.min(TURNED_AWAY_AT_ONCE, Math.floor(open / 4) + 1);
  return { served: Math.min(open - turnedAway, maxConnections), turnedAway };
}

/** Limits the connections of a server, on all its addresses together. */
export class ConnectionGate {
  readonly #limit: ConnectionLimit;
  readonly #log: Log;
  readonly #byClient: ConnectionsByClient;
  readonly #figures: ConnectionFigures;
  readonly #refuse: (socket: Socket, crowd: Crowd) => void;
  /** The oldest first. */
  readonly #turnedAway = new Set<Socket>();
  #hasWarned = false;

  /** One function for all connections. */
  readonly #onLeft = (): void => this.#left();

  /** `refuse` answers a connection that is one too many, and ends it. */
  constructor(
    limit: ConnectionLimit,
    byClient: ConnectionsByClient,
    figures: ConnectionFigures,
    log: Log,
    refuse: (socket: Socket, crowd: Crowd) => void,
  ) {
    this.#limit = limit;
    this.#byClient = byClient;
    this.#figures = figures;
    figures.limit = limit.served;
    this.#log = log;
    this.#refuse = refuse;
  }

  /**
   * Whether a new connection is served. One too many is answered and ended; one that is not `isPlain` is cut instead,
   * as an answer would need the handshake that is to be spared.
   */
  admit(socket: Socket, isPlain: boolean): boolean {
    const isOfClient = !this.#byClient.admit(socket);
    if (!isOfClient && this.#admits()) {
      socket.on("close", this.#onLeft);
      return true;
    }
    const crowd = isOfClient ? "client" : "all";
    this.#figures.refused(crowd);
    if (isPlain) this.#turnAway(socket, crowd);
    else socket.destroy();
    return false;
  }

  /** Cuts the connections that have not taken their refusal yet. */
  destroyTurnedAway(): void {
    for (const socket of this.#turnedAway) socket.destroy();
  }

  #admits(): boolean {
    if (this.#figures.open < this.#limit.served) {
      this.#figures.open += 1;
      return true;
    }
    const { open } = this.#figures;
    if (!this.#hasWarned) this.#log.warn("too many connections: others are turned away", { served: open });
    this.#hasWarned = true;
    return false;
  }

  #left(): void {
    this.#figures.open -= 1;
    if (this.#figures.open < this.#limit.served / 2) this.#hasWarned = false;
  }

  #turnAway(socket: Socket, crowd: Crowd): void {
    const [oldest] = this.#turnedAway;
    // The oldest has had the most time to take its refusal.
    if (oldest !== undefined && this.#turnedAway.size >= this.#limit.turnedAway) this.#cut(oldest);
    this.#turnedAway.add(socket);
    socket.on("error", () => this.#cut(socket));
    socket.on("close", () => this.#turnedAway.delete(socket));
    // Drops what the client sends: unread bytes would cause a reset, and the client would lose its answer.
    socket.resume();
    this.#refuse(socket, crowd);
  }

  #cut(socket: Socket): void {
    this.#turnedAway.delete(socket);
    socket.destroy();
  }
}
