// Ends connections without losing the last answer.

import type { Socket } from "node:net";
import type { Clock } from "../ops/clock.js";

/** How long, and for how many bytes, a client may go on sending after its last answer. */
const MAX_DEAF_MS = 5_000;
const MAX_DEAF_BYTES = 1024 * 1024;

/**
 * Ends connections in stages (RFC 9112, 9.6): a connection closed while the client still sends is reset, and the client
 * may lose an answer that it has not read.
 */
export class StagedEnds {
  readonly #clock: Clock;
  /** How many bytes each connection had received when its input began to be dropped. */
  readonly #deafAt = new WeakMap<Socket, number>();
  readonly #ending = new WeakSet<Socket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Drops what arrives on the connection from now on. */
  deafen(socket: Socket): void {
    if (!this.#deafAt.has(socket)) this.#deafAt.set(socket, socket.bytesRead);
  }

  /** Whether what arrives on the connection is dropped. Too much of it cuts the connection. */
  isDeaf(socket: Socket): boolean {
    const deafAt = this.#deafAt.get(socket);
    if (deafAt === undefined) return false;
    if (socket.bytesRead - deafAt > MAX_DEAF_BYTES) socket.destroy();
    return true;
  }

  /** Ends this side of a connection after `lastBytes`; all of it once the client ended its own, or took too long. */
  end(socket: Socket, lastBytes = ""): void {
    if (this.#ending.has(socket)) return;
    this.deafen(socket);
    this.#ending.add(socket);
    // Not every parser reports bytes after the last request.
    socket.on("data", () => this.isDeaf(socket));
    if (socket.writable) socket.end(lastBytes);
    const timer = this.#clock.after(MAX_DEAF_MS, () => socket.destroy());
    socket.on("close", () => timer.cancel());
  }

  /** Whether this side of a connection has ended. */
  isEnding(socket: Socket): boolean {
    return this.#ending.has(socket);
  }
}
