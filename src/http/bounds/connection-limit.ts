import type { Server, Socket } from "node:net";
import type { Log } from "../../ops/log.js";

/**
 * Descriptors that files need where the process may open many: 256 segments, and 64 for the journal and streams on
 * their way.
 */
const FILES = 320;
/** Connections that are on their way out at the same time, having been told that there are too many. */
const TURNED_AWAY_AT_ONCE = 16;

/** How many connections a server takes. */
export interface ConnectionLimit {
  /** The most that are served. */
  readonly served: number;
  /** The most that are turned away at the same time. */
  readonly turnedAway: number;
}

/**
 * The connections that leave enough of `freeDescriptors`, those that the process may open beside what it has open now,
 * to the files: idle clients must not keep the server from its own. Half of them goes to connections where there are
 * few.
 */
export function connectionLimitFor(freeDescriptors: number): ConnectionLimit {
  if (freeDescriptors === Infinity) return { served: Infinity, turnedAway: TURNED_AWAY_AT_ONCE };
  const open = Math.max(2, freeDescriptors - Math.min(Math.floor(freeDescriptors / 2), FILES));
  const turnedAway = Math.min(TURNED_AWAY_AT_ONCE, Math.floor(open / 4) + 1);
  return { served: open - turnedAway, turnedAway };
}

/** What a gate needs. */
export interface ConnectionGateOptions {
  readonly limit: ConnectionLimit;
  /** Gives a connection that is one too many its only answer, and ends it. */
  readonly refuse: (socket: Socket) => void;
  readonly log: Log;
}

/** Stands before the listeners of a server's connections, and lets through only as many as there may be. */
export class ConnectionGate {
  readonly #options: ConnectionGateOptions;
  /** The oldest first. */
  readonly #turnedAway = new Set<Socket>();
  #served = 0;
  #hasWarned = false;

  /** Takes the place of those who listen for connections of `server` now. */
  constructor(server: Server, options: ConnectionGateOptions) {
    this.#options = options;
    const listeners = server.listeners("connection") as ((socket: Socket) => void)[]; // what listens for this event takes that
    server.removeAllListeners("connection");
    // One for all connections.
    const left = (): void => this.#left();
    server.on("connection", (socket: Socket) => {
      if (!this.#admits()) return this.#turnAway(socket);
      socket.on("close", left);
      for (const listener of listeners) listener.call(server, socket);
    });
  }

  /** Cuts those that have not taken their refusal yet. */
  destroyTurnedAway(): void {
    for (const socket of this.#turnedAway) socket.destroy();
  }

  #admits(): boolean {
    const { limit, log } = this.#options;
    if (this.#served < limit.served) {
      this.#served += 1;
      return true;
    }
    if (!this.#hasWarned) log.warn("too many connections: others are turned away", { served: this.#served });
    this.#hasWarned = true;
    return false;
  }

  #left(): void {
    this.#served -= 1;
    if (this.#served < this.#options.limit.served / 2) this.#hasWarned = false;
  }

  #turnAway(socket: Socket): void {
    const [oldest] = this.#turnedAway;
    // It has had the most time to take its refusal.
    if (oldest !== undefined && this.#turnedAway.size >= this.#options.limit.turnedAway) this.#cut(oldest);
    this.#turnedAway.add(socket);
    socket.on("error", () => this.#cut(socket));
    socket.on("close", () => this.#turnedAway.delete(socket));
    // What the client sends is dropped: with bytes unread its answer would be lost in a reset.
    socket.resume();
    this.#options.refuse(socket);
  }

  #cut(socket: Socket): void {
    this.#turnedAway.delete(socket);
    socket.destroy();
  }
}
