// Runs pipelined requests one at a time.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { dropRest } from "./node/drop-rest.js";

/** Most requests that wait for their turn on one connection, and what their heads may take there. */
const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 256 * 1024;
/** What their bodies may take there. */
const MAX_WAITING_BODY_BYTES = 1024 * 1024;
/** What those of all connections may take. */
const MAX_WAITING_BYTES_IN_ALL = 64 * 1024 * 1024;
/** About what a request takes beside its head, and a header beside its text. */
const REQUEST_BYTES = 4096;
const HEADER_BYTES = 128;
/** Most of a body that is read before its turn: Node stops at 16 KiB, after one read more. */
const MAX_EARLY_BYTES = 80 * 1024;

/** One who waits. */
interface Waiting {
  readonly req: IncomingMessage;
  readonly headBytes: number;
  /** What its body takes; until that is there, what it may take. */
  bodyBytes: number;
}

/** Those who wait on one connection. */
interface Line {
  readonly waiting: Waiting[];
  headBytes: number;
  bodyBytes: number;
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
   * many wait there already, or too much in all: its answer is then the last of the connection, and those after it are
   * dropped. Refused one by one they would take as much memory as those that wait.
   */
  inTurn(req: IncomingMessage, res: ServerResponse, run: () => void): boolean {
    // An answer gets its socket when it is its turn.
    if (res.socket !== null) {
      run();
      return true;
    }
    const line = this.#lineOf(req.socket);
    this.#settleLast(line);
    const one: Waiting = { req, headBytes: bytesOfHead(req), bodyBytes: mostBytesOfBody(req) };
    if (!this.#hasRoom(line, one)) {
      res.shouldKeepAlive = false;
      if (!dropRest(req.socket)) req.socket.destroy();
      return false;
    }
    line.waiting.push(one);
    this.#count(line, one, 1);
    // Not in the event itself: there Node is in the middle of handing the socket over.
    res.on("socket", () =>
      process.nextTick(() => {
        this.#leave(line);
        run();
      }),
    );
    return true;
  }

  #hasRoom(line: Line, { headBytes, bodyBytes }: Waiting): boolean {
    if (line.waiting.length >= MAX_WAITING || line.headBytes + headBytes > MAX_WAITING_BYTES) return false;
    if (line.bodyBytes + bodyBytes > MAX_WAITING_BODY_BYTES) return false;
    return this.#bytes + headBytes + bodyBytes + REQUEST_BYTES <= MAX_WAITING_BYTES_IN_ALL;
  }

  /** Another has come after it, so that its body is there: in the stream, whole. */
  #settleLast(line: Line): void {
    const last = line.waiting.at(-1);
    if (last === undefined) return;
    const tooMany = last.bodyBytes - last.req.readableLength;
    last.bodyBytes -= tooMany;
    line.bodyBytes -= tooMany;
    this.#bytes -= tooMany;
  }

  #lineOf(socket: Socket): Line {
    const known = this.#lines.get(socket);
    if (known !== undefined) return known;
    const line: Line = { waiting: [], headBytes: 0, bodyBytes: 0 };
    this.#lines.set(socket, line);
    // No answer comes to its turn any more.
    socket.once("close", () => {
      while (line.waiting.length > 0) this.#leave(line);
    });
    return line;
  }

  #leave(line: Line): void {
    const first = line.waiting.shift();
    if (first !== undefined) this.#count(line, first, -1);
  }

  #count(line: Line, { headBytes, bodyBytes }: Waiting, sign: 1 | -1): void {
    line.headBytes += sign * headBytes;
    line.bodyBytes += sign * bodyBytes;
    this.#bytes += sign * (headBytes + bodyBytes + REQUEST_BYTES);
  }

  /** The requests that wait for their turn on a connection, in order. */
  waitingOn(socket: Socket): readonly IncomingMessage[] {
    return this.#lines.get(socket)?.waiting.map(({ req }) => req) ?? [];
  }
}

/** About what the head of a request takes in memory: a short header takes more than its text. */
function bytesOfHead({ url = "", rawHeaders }: IncomingMessage): number {
  let bytes = url.length;
  for (const text of rawHeaders) bytes += text.length + HEADER_BYTES / 2;
  return bytes;
}

/** The most that is read of a body before it is asked for. */
function mostBytesOfBody({ headers }: IncomingMessage): number {
  if (headers["transfer-encoding"] !== undefined) return MAX_EARLY_BYTES;
  return Math.min(Number(headers["content-length"] ?? 0), MAX_EARLY_BYTES);
}
