import type { Socket } from "node:net";
import type { Clock } from "../ops/clock.js";

/** How long, and for how many bytes, a client may go on sending behind its last answer. */
const MAX_DEAF_MS = 5_000;
const MAX_DEAF_BYTES = 1024 * 1024;

/**
 * Ends connections in stages (RFC 9112, 9.6): closed while the client still sends, a connection is reset, and the client
 * may lose an answer that it has not read.
 */
export class StagedEnds {
  readonly #clock: Clock;
  /** What each connection that is ending had sent before. */
  readonly #endedAt = new WeakMap<Socket, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends this side of a connection behind `lastBytes`, and the connection when the client has ended its own, or took too long. */
  end(socket: Socket, lastBytes = ""): void {
    if (this.#endedAt.has(socket)) return;
    this.#endedAt.set(socket, socket.bytesRead);
    if (socket.writable) socket.end(lastBytes);
    const timer = this.#clock.after(MAX_DEAF_MS, () => socket.destroy());
    socket.on("close", () => timer.cancel());
  }

  /** Whether a connection is ending: what its client still sends is for nobody, and too much of it cuts the connection. */
  isEnding(socket: Socket): boolean {
    const endedAt = this.#endedAt.get(socket);
    if (endedAt === undefined) return false;
    if (socket.bytesRead - endedAt > MAX_DEAF_BYTES) socket.destroy();
    return true;
  }
}
