// Runs pipelined requests one at a time.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Most requests that wait for their turn on one connection, and what their heads may take there. */
const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 256 * 1024;
/** What those of all connections may take. */
const MAX_WAITING_BYTES_IN_ALL = 64 * 1024 * 1024;
/** About what a request takes beside its head, and a header beside its text. */
const REQUEST_BYTES = 4096;
const HEADER_BYTES = 128;

/** Those who wait on one connection. */
interface Line {
  readonly requests: IncomingMessage[];
  headBytes: number;
}

/**
 * Runs the requests of one connection one at a time, as RFC 9112 (9.3.2) requires of all that change something: a
 * pipelined request sees the effect of the one before.
 */
export class Pipeline {
  /** Requests that wait for their turn, by connection. */
  readonly #lines = new WeakMap<Socket, Line>();
  #bytes = 0;

  /**
   * Calls `run` when all requests before this one on its connection are answered: nearly always at once. False when too
   * many wait there already, or too much in all. Refused at once they fill the connection's queue of answers, at which
   * Node stops reading.
   */
  inTurn(req: IncomingMessage, res: ServerResponse, run: () => void): boolean {
    // An answer gets its socket when it is its turn.
    if (res.socket !== null) {
      run();
      return true;
    }
    const line = this.#lineOf(req.socket);
    const bytes = bytesOfHead(req);
    const isFull = line.requests.length >= MAX_WAITING || line.headBytes + bytes > MAX_WAITING_BYTES;
    if (isFull || this.#bytes + bytes + REQUEST_BYTES > MAX_WAITING_BYTES_IN_ALL) return false;
    line.requests.push(req);
    line.headBytes += bytes;
    this.#bytes += bytes + REQUEST_BYTES;
    // Not in the event itself: there Node is in the middle of handing the socket over.
    res.on("socket", () =>
      process.nextTick(() => {
        this.#leave(line, bytes);
        run();
      }),
    );
    return true;
  }

  #lineOf(socket: Socket): Line {
    const known = this.#lines.get(socket);
    if (known !== undefined) return known;
    const line: Line = { requests: [], headBytes: 0 };
    this.#lines.set(socket, line);
    // No answer comes to its turn any more.
    socket.once("close", () => {
      this.#bytes -= line.headBytes + line.requests.length * REQUEST_BYTES;
      line.requests.length = 0;
      line.headBytes = 0;
    });
    return line;
  }

  #leave(line: Line, bytes: number): void {
    if (line.requests.shift() === undefined) return;
    line.headBytes -= bytes;
    this.#bytes -= bytes + REQUEST_BYTES;
  }

  /** The requests that wait for their turn on a connection, in order. */
  waitingOn(socket: Socket): readonly IncomingMessage[] {
    return this.#lines.get(socket)?.requests ?? [];
  }
}

/** About what the head of a request takes in memory: a short header takes more than its text. */
function bytesOfHead({ url = "", rawHeaders }: IncomingMessage): number {
  let bytes = url.length;
  for (const text of rawHeaders) bytes += text.length + HEADER_BYTES / 2;
  return bytes;
}
