// Runs pipelined requests one at a time.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Most requests that wait for their turn on one connection. */
const MAX_WAITING = 256;

/**
 * Runs the requests of one connection one at a time, as RFC 9112 (9.3.2) requires of all that change something: a
 * pipelined request sees the effect of the one before.
 */
export class Pipeline {
  /** Requests that wait for their turn, by connection. */
  readonly #waiting = new WeakMap<Socket, IncomingMessage[]>();

  /**
   * Calls `run` when all requests before this one on its connection are answered: nearly always at once. False when too
   * many wait there already. Refused at once they fill the connection's queue of answers, at which Node stops reading.
   */
  inTurn(req: IncomingMessage, res: ServerResponse, run: () => void): boolean {
    // An answer gets its socket when it is its turn.
    if (res.socket !== null) {
      run();
      return true;
    }
    const { socket } = req;
    const waiting = this.#waiting.get(socket) ?? [];
    if (waiting.length >= MAX_WAITING) return false;
    waiting.push(req);
    this.#waiting.set(socket, waiting);
    // Not in the event itself: there Node is in the middle of handing the socket over.
    res.on("socket", () => process.nextTick(() => this.#go(socket, run)));
    return true;
  }

  #go(socket: Socket, run: () => void): void {
    this.#waiting.get(socket)?.shift();
    run();
  }

  /** The requests that wait for their turn on a connection, in order. */
  waitingOn(socket: Socket): readonly IncomingMessage[] {
    return this.#waiting.get(socket) ?? [];
  }
}
