// A node:http server that knows which of its connections are idle.
//
// Private name: `httpAllowHalfOpen`, a member of Node's HTTP server that has no option. Without it Node would end a
// connection as soon as the client ends its side, and the client would lose the answers that it still waits for. A
// version of Node that ignores it does just that: such a client sends its requests again.
//
// It does not listen itself: connections come by the event `connection`, which is public. What is not promised is that
// Node begins to check for late requests at its own event `listening`, so that is emitted here. A version of Node that
// begins elsewhere does not cut off a late request; connections that are idle are still ended, and all end with the
// server.

import { Server, type ServerOptions, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { answerUnderWay } from "./answer-under-way.js";
import { DirectConnection, type Serve } from "./direct-connection.js";
import { DirectRequest } from "./direct-request.js";
import { OwnResponse } from "./own-response.js";

/** For how long a connection is spared after its answer when the server is closed, by which clock. */
export interface Sparing {
  readonly sparedMs: number;
  readonly nowMs: () => number;
}

const SPARES_NONE: Sparing = { sparedMs: 0, nowMs: () => 0 };

/**
 * Tracks which connections are idle. Node takes a connection for idle as soon as its answer has been submitted, and
 * cuts the answer off when the server is closed. Here it is idle once the answer is out, and before its first request.
 */
export class PatientServer extends Server<typeof DirectRequest, typeof OwnResponse<DirectRequest>> {
  readonly #connections = new Map<Socket, DirectConnection | null>();
  readonly #sparing: Sparing;

  /** `endAfterLast` is called for a connection whose last answer is out. */
  constructor(
    options: ServerOptions,
    serve: Serve,
    endAfterLast: (socket: Socket) => void,
    sparing: Sparing = SPARES_NONE,
  ) {
    super({ ...options, IncomingMessage: DirectRequest, ServerResponse: OwnResponse });
    this.#sparing = sparing;
    // Otherwise Node would end this side with the client's, while the client may wait for its answers.
    Object.assign(this, { httpAllowHalfOpen: true });
    this.emit("listening");
    const connections = this.#connections;
    // One function of each kind for all connections.
    function end(this: Socket): void {
      endAfterLast(this);
    }
    function clientEnded(this: Socket): void {
      // From here on Node must know of the requests that wait for an answer.
      connections.get(this)?.handOver();
      const answer = answerUnderWay(this);
      if (answer instanceof OwnResponse) answer.onClientEnd?.();
    }
    function forget(this: Socket): void {
      connections.get(this)?.closed();
      connections.delete(this);
    }
    function answered(this: ServerResponse): void {
      const connection = connections.get(this.req.socket);
      if (connection) connection.answeredAtMs = sparing.nowMs();
    }
    for (const event of ["request", "checkContinue"] as const) {
      this.on(event, (_req, res) => void res.on("finish", answered));
    }
    this.on("connection", (socket) => {
      // What Node calls there would close it at once.
      socket.destroySoon = end;
      connections.set(socket, DirectConnection.open(socket, serve, this.keepAliveTimeout));
      socket.on("close", forget);
      // Before Node's own.
      socket.prependListener("end", clientEnded);
    });
    this.on("timeout", (socket) => {
      const connection = connections.get(socket);
      if (connection) connection.timedOut();
      else socket.destroy();
    });
  }

  /** The answer that a connection is busy with, from the request's head to the last byte; `null` without one. */
  answerUnderWay(socket: Socket): ServerResponse | null {
    this.#connections.get(socket)?.handOver();
    return answerUnderWay(socket);
  }

  override closeAllConnections(): void {
    for (const socket of this.#connections.keys()) socket.destroy();
  }

  /**
   * Called by `close`. A connection that has not asked yet is about to, and one that was just answered may have sent
   * its next request.
   */
  override closeIdleConnections(): void {
    const sinceMs = this.#sparing.nowMs() - this.#sparing.sparedMs;
    this.#closeIdle((socket, connection) =>
      connection === null ? socket.bytesRead > 0 : connection.hasAsked && connection.answeredAtMs <= sinceMs,
    );
  }

  /** Closes those too that were just answered. */
  closeAnsweredConnections(): void {
    this.#closeIdle((socket, connection) => connection?.hasAsked ?? socket.bytesRead > 0);
  }

  /** Closes those too that have not asked for anything yet. */
  closeUnusedConnections(): void {
    this.#closeIdle(() => true);
  }

  #closeIdle(isChosen: (socket: Socket, connection: DirectConnection | null) => boolean): void {
    for (const [socket, connection] of this.#connections) {
      if (connection?.isBusy === true || answerUnderWay(socket) !== null || !isChosen(socket, connection)) continue;
      if (socket.writableLength > 0) socket.destroySoon();
      else socket.destroy();
    }
  }
}
