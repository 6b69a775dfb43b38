import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../ops/clock.js";
import { problem, type Problem, type ProblemCode } from "./problems.js";
import type { Responder } from "./respond.js";

/** How long, and for how many bytes, a client may go on sending after HTTP broke on its connection. */
const MAX_DEAF_MS = 5_000;
const MAX_DEAF_BYTES = 1024 * 1024;

/** What Node calls the faults that have an answer of their own. */
const CODES: Readonly<Record<string, ProblemCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: "request-timeout",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "body-too-large",
  HPE_HEADER_OVERFLOW: "header-too-large",
  HPE_INVALID_EOF_STATE: "body-incomplete",
};

/** Answers connections on which no request can be made out, and closes them. */
export class ClientErrors {
  readonly #responder: Responder;
  readonly #clock: Clock;
  /** What a connection had sent when it was answered. */
  readonly #answeredAt = new WeakMap<Duplex, number>();

  constructor(responder: Responder, clock: Clock) {
    this.#responder = responder;
    this.#clock = clock;
  }

  /** For the event `clientError` of a server. Never throws. */
  answer(error: NodeJS.ErrnoException, socket: Socket): void {
    const answeredAt = this.#answeredAt.get(socket);
    // What comes after the fault is read as faults too: they are the client still sending.
    if (answeredAt !== undefined) {
      if (socket.bytesRead - answeredAt > MAX_DEAF_BYTES) socket.destroy();
    } else if (!socket.writable || isAnswering(socket)) {
      socket.destroy();
    } else {
      this.close(socket, problem(CODES[error.code ?? ""] ?? "bad-request", detailOf(error)));
    }
  }

  /** Writes a problem as the last answer of a connection. */
  close(socket: Socket, refusal: Problem): void {
    this.#answeredAt.set(socket, socket.bytesRead);
    socket.end(this.#responder.rawProblem(refusal));
    const timer = this.#clock.after(MAX_DEAF_MS, () => socket.destroy());
    socket.on("close", () => timer.cancel());
  }
}

/** Whether an answer is on its way already: nothing may be written into it. */
function isAnswering(socket: Socket): boolean {
  // Node keeps the answer that a connection is busy with under this name, and has no other way to ask for it.
  const { _httpMessage: answer } = socket as Socket & { _httpMessage?: { readonly headersSent: boolean } | null };
  return answer?.headersSent === true;
}

/** The parser's own words for what is wrong, where there are any. */
function detailOf(error: NodeJS.ErrnoException): { detail?: string } {
  if (!("reason" in error) || typeof error.reason !== "string" || error.reason === "") return {};
  return { detail: `${error.reason}.` };
}
