import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import { ClientErrors } from "./client-errors.js";
import type { Arrival, Dispatcher } from "./dispatch.js";
import { problem } from "./problems.js";
import type { Responder } from "./respond.js";

/** What a request may cost before it is understood. Times in milliseconds, sizes in bytes. */
const LIMITS = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 20_000,
  requestTimeout: 120_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 5_000,
} as const;

/** What an HTTP server needs. */
export interface HttpServerOptions {
  readonly dispatcher: Dispatcher;
  readonly responder: Responder;
  readonly clock: Clock;
  readonly log: Log;
}

/** A node:http server that leads all it gets to the dispatcher, and answers what is not HTTP. */
export class HttpServer {
  readonly #dispatcher: Dispatcher;
  readonly #clientErrors: ClientErrors;
  readonly #log: Log;
  readonly #server: Server;
  /** Connections on which nothing has been asked yet. */
  readonly #unused = new Set<Socket>();

  constructor({ dispatcher, responder, clock, log }: HttpServerOptions) {
    this.#dispatcher = dispatcher;
    this.#clientErrors = new ClientErrors(responder, clock);
    this.#log = log;
    // A missing Host is refused by the dispatcher, in words.
    this.#server = createServer({ ...LIMITS, requireHostHeader: false, insecureHTTPParser: false });
    // Past this count Node would leave headers out without a word; their size is bounded above.
    this.#server.maxHeadersCount = 0;
    this.#takeRequests();
    this.#takeConnections();
  }

  /** Begins to accept; resolves to the port. Rejects with the platform's error. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port }, () => {
        this.#server.off("error", reject);
        this.#server.on("error", (error) => this.#log.error("the HTTP server has a fault", { fault: error.message }));
        const address = this.#server.address();
        resolve(typeof address === "object" && address !== null ? address.port : port);
      });
    });
  }

  /** Accepts no more, and lets go of connections that nobody waits on. Resolves when the last one is gone. */
  close(): Promise<void> {
    // A connection that still sends an answer would otherwise be kept for the next request.
    this.#server.keepAliveTimeout = 1;
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const socket of this.#unused) socket.destroy();
    });
  }

  /** Cuts all connections. */
  destroyConnections(): void {
    this.#server.closeAllConnections();
  }

  #takeRequests(): void {
    const take = (req: IncomingMessage, res: ServerResponse, arrival?: Arrival): void => {
      this.#unused.delete(req.socket);
      this.#dispatcher.handle(req, res, arrival);
    };
    this.#server.on("request", (req, res) => take(req, res));
    this.#server.on("checkContinue", (req, res) => take(req, res, { awaitsContinue: true }));
    this.#server.on("checkExpectation", (req, res) => take(req, res, { refusal: problem("expectation-failed") }));
  }

  #takeConnections(): void {
    this.#server.on("connection", (socket) => {
      this.#unused.add(socket);
      socket.on("close", () => this.#unused.delete(socket));
    });
    // What listens on a port has sockets of node:net: that the types say less is for other transports.
    this.#server.on("clientError", (error, socket) => this.#clientErrors.answer(error, socket as Socket)); // see above
    this.#server.on("connect", (_req, socket) => this.#clientErrors.close(socket as Socket, problem("method-not-allowed"))); // see above
  }
}
