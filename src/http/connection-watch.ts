import type { Socket } from "node:net";
import type { Context } from "./context.js";
import type { Exchange } from "./exchange.js";
import { problem } from "./problems.js";

/** A read that waits on a connection. */
export interface LiveRead {
  /** The connection is gone. */
  dropped(): void;
}

/** Most reads that wait on one connection: a client that pipelines more of them only wants to fill the memory. */
const MAX_READS_PER_CONNECTION = 16;

/**
 * Tells live reads when their connection is gone. Node closes only the answer that a connection is busy with, and reads
 * pipelined behind that one would never hear of it.
 */
export class ConnectionWatch {
  readonly #context: Pick<Context, "inFlight" | "responder">;
  readonly #reads = new WeakMap<Socket, Set<LiveRead>>();

  constructor(context: Pick<Context, "inFlight" | "responder">) {
    this.#context = context;
  }

  /** Whether a request may become a live read; when not, it has its answer, or nobody wants one any more. */
  admits(exchange: Exchange): boolean {
    const { inFlight, responder } = this.#context;
    const { socket } = exchange.req;
    if (socket.destroyed) {
      inFlight.end(exchange);
      return false;
    }
    if ((this.#reads.get(socket)?.size ?? 0) < MAX_READS_PER_CONNECTION) return true;
    responder.refuse(exchange, problem("overloaded", { detail: "Too many reads wait on this connection." }));
    return false;
  }

  /** Watches the connection of an admitted request for `read`. */
  add(exchange: Exchange, read: LiveRead): void {
    const { socket } = exchange.req;
    const reads = this.#reads.get(socket) ?? this.#watch(socket);
    reads.add(read);
  }

  /** Stops watching for `read`. */
  remove(exchange: Exchange, read: LiveRead): void {
    this.#reads.get(exchange.req.socket)?.delete(read);
  }

  #watch(socket: Socket): Set<LiveRead> {
    const reads = new Set<LiveRead>();
    this.#reads.set(socket, reads);
    socket.on("close", () => {
      for (const read of reads) read.dropped();
    });
    return reads;
  }
}
