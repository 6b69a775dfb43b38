import type { Socket } from "node:net";
import type { Clock } from "../../ops/clock.js";

/** How long, and for how many bytes, a client may go on sending behind its last answer. */
const MAX_DEAF_MS = 5_000;
const MAX_DEAF_BYTES = 1024 * 1024;

/**
 * Ends connections in stages (RFC 9112, 9.6): closed while the client still sends, a connection is reset, and the
 * client may lose an answer that it has not read.
 */
export class StagedEnds {
  readonly #clock: Clock;
  /** What each connection had sent when it had been listened to for the last time. */
  readonly #deafAt = new WeakMap<Socket, number>();
  readonly #ending = new WeakSet<Socket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** From now on what comes on the connection is for nobody. */
  deafen(socket: Socket): void {
    if (!this.#deafAt.has(socket)) this.#deafAt.set(socket, socket.bytesRead);
  }

  /** Whether what comes on the connection is for nobody; too much of it cuts the connection. */
  isDeaf(socket: Socket): boolean {
    const deafAt = this.#deafAt.get(socket);
    if (deafAt === undefined) return false;
    if (socket.bytesRead - deafAt > MAX_DEAF_BYTES) socket.destroy();
    return true;
  }

  /**
   * Ends this side of a connection behind `lastBytes`, and the connection when the client has ended its own, or took
   * too long.
   */
  end(socket: Socket, lastBytes = ""): void {
    if (this.#ending.has(socket)) return;
    this.deafen(socket);
    this.#ending.add(socket);
    // Not every parser says that something comes behind the last request.
    socket.on("data", () => this.isDeaf(socket));
    if (socket.writable) socket.end(lastBytes);
    const timer = this.#clock.after(MAX_DEAF_MS, () => socket.destroy());
    socket.on("close", () => timer.cancel());
  }

  /** Whether this side of a connection has its end. */
  isEnding(socket: Socket): boolean {
    return this.#ending.has(socket);
  }
}
