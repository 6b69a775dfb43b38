// Answers what is not HTTP.

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { STREAM_METHODS } from "./encoding/cors.js";
import { OwnResponse } from "./node/own-response.js";
import { problem, type Problem, type ProblemCode } from "./encoding/problems.js";
import type { Responder } from "./answer/respond.js";
import type { StagedEnds } from "./staged-end.js";

/** A request line longer than this is not searched for its method. */
const MAX_REQUEST_LINE_BYTES = 8 * 1024;
const REQUEST_LINE = /^[\w!#$%&'*+.^`|~-]+ \S+ HTTP\/1\.[01]\r\n/;

/** Node's codes of the faults that have an answer of their own. */
const CODES: Readonly<Record<string, ProblemCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: "request-timeout",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "body-too-large",
  HPE_HEADER_OVERFLOW: "header-too-large",
  HPE_INVALID_EOF_STATE: "body-incomplete",
};

/** In place of the parser's words. */
const DETAILS: Readonly<Record<string, string>> = {
  HPE_PAUSED_H2_UPGRADE: "HTTP/2 is served by TLS only; this address takes HTTP/1.1.",
};

/** Answers connections on which no valid request can be read any more, and closes them. */
export class ClientErrors {
  readonly #responder: Responder;
  readonly #ends: StagedEnds;
  readonly #answerUnderWay: (socket: Socket) => ServerResponse | null;

  /** `answerUnderWay` gives the answer that a connection is busy with. */
  constructor(responder: Responder, ends: StagedEnds, answerUnderWay: (socket: Socket) => ServerResponse | null) {
    this.#responder = responder;
    this.#ends = ends;
    this.#answerUnderWay = answerUnderWay;
  }

  /** For the event `clientError` of a server. Never throws. */
  answer(error: NodeJS.ErrnoException, socket: Socket): void {
    // Bytes after a fault are reported as more faults: the client is still sending.
    if (!this.#ends.isDeaf(socket)) this.close(socket, problemOf(error));
  }

  /** Sends a problem as the last answer of a connection, after the answers to the valid requests. */
  close(socket: Socket, refusal: Problem): void {
    if (this.#ends.isEnding(socket)) return;
    this.#ends.deafen(socket);
    const earlier = this.#answerUnderWay(socket);
    if (earlier?.req.complete === true) earlier.on("close", () => this.#goOn(earlier, socket, refusal));
    else if (!socket.writable) socket.destroy();
    else if (earlier?.headersSent !== true)
      this.#ends.end(socket, this.#responder.rawRefusal(refusal, earlier !== null));
    else if (isWhole(earlier)) this.#ends.end(socket);
    else socket.destroy();
  }

  /** Sends a problem to a new connection that is not served. */
  turnAway(socket: Socket, refusal: Problem): void {
    this.#ends.end(socket, this.#responder.rawProblem(refusal));
  }

  /** Nothing follows an answer that said it was the last. */
  #goOn(earlier: ServerResponse, socket: Socket, refusal: Problem): void {
    if (!earlier.shouldKeepAlive) this.#ends.end(socket);
    else this.close(socket, refusal);
  }

  /** Whether a connection waits for the answers before its last one: those do not end it. */
  isWaiting(socket: Socket): boolean {
    return this.#ends.isDeaf(socket) && !this.#ends.isEnding(socket);
  }
}

/** Whether an answer to a request that broke in its body has all been written. */
function isWhole(answer: ServerResponse): boolean {
  return answer.writableEnded || (answer instanceof OwnResponse && answer.isWhole);
}

function problemOf(error: NodeJS.ErrnoException): Problem {
  if (isUnknownMethod(error)) return problem("method-not-allowed", { allow: STREAM_METHODS });
  return problem(CODES[error.code ?? ""] ?? "bad-request", detailOf(error));
}

/** Whether the parser stopped at the method of a request that is otherwise valid HTTP (RFC 9112, 3). */
function isUnknownMethod(error: NodeJS.ErrnoException): boolean {
  if (error.code !== "HPE_INVALID_METHOD" || !("rawPacket" in error) || !Buffer.isBuffer(error.rawPacket)) return false;
  const stoppedAt = "bytesParsed" in error && typeof error.bytesParsed === "number" ? error.bytesParsed : 0;
  // The packet may begin with earlier requests: the line is the one that the parser stopped in.
  const start = stoppedAt === 0 ? 0 : error.rawPacket.lastIndexOf("\n", stoppedAt - 1) + 1;
  return REQUEST_LINE.test(error.rawPacket.toString("latin1", start, start + MAX_REQUEST_LINE_BYTES));
}

/** What is wrong, in the parser's own words where there are no better, or none. */
function detailOf(error: NodeJS.ErrnoException): { detail?: string } {
  const detail = DETAILS[error.code ?? ""];
  if (detail !== undefined) return { detail };
  if (!("reason" in error) || typeof error.reason !== "string" || error.reason === "") return {};
  return { detail: `${error.reason}.` };
}
