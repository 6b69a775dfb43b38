// The node:http server: limits, connections, and how they end.

import type { X509Certificate } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { ConnectionFigures, type Crowd, type TlsFailure } from "../metrics/connection-figures.js";
import type { Clock } from "../ops/clock.js";
import type { Log } from "../ops/log.js";
import { ClientErrors } from "./client-errors.js";
import { ConnectionGate, type ConnectionLimit } from "./bounds/connection-limit.js";
import type { Clients } from "./bounds/clients.js";
import type { ConnectionsByClient } from "./bounds/connections-by-client.js";
import { STREAM_METHODS } from "./encoding/cors.js";
import type { DirectRequest } from "./node/direct-request.js";
import { PatientServer } from "./node/patient-server.js";
import type { Arrival, Sink } from "./dispatch.js";
import { KEEP_ALIVE_SECONDS } from "./encoding/head.js";
import { problem, type Problem } from "./encoding/problems.js";
import type { Responder } from "./answer/respond.js";
import type { Sessions } from "./http2/sessions.js";
import { http2Sessions } from "./http2-requests.js";
import { Listener } from "./listen/listener.js";
import type { ListenPlan } from "./listen/plan.js";
import { TlsDoor } from "./listen/tls-door.js";
import { StagedEnds } from "./staged-end.js";

/**
 * What a request may cost before it is understood, and how long a connection may wait for one: in every server, except
 * in tests that shorten them. Times in milliseconds, sizes in bytes.
 */
export const REQUEST_LIMITS = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 20_000,
  requestTimeout: 120_000,
  keepAliveTimeout: KEEP_ALIVE_SECONDS * 1000,
  /** How often Node checks for requests that are too late. */
  connectionsCheckingInterval: 5_000,
  /** How long a stop waits for the first request of a connection. */
  firstRequestTimeout: 1_000,
  /** How long it waits for the next request of a connection, and how long ago that was last answered. */
  nextRequestTimeout: 500,
};

/** How many headers a request may have: in memory each costs far more than its bytes. */
const MAX_HEADERS = 256;

/** Limits of this kind. */
export type RequestLimits = Readonly<typeof REQUEST_LIMITS>;

/** The options of an HTTP server. */
export interface HttpServerOptions {
  readonly dispatcher: Sink;
  readonly responder: Responder;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: RequestLimits;
  readonly connectionLimit: ConnectionLimit;
  readonly connectionsByClient: ConnectionsByClient;
  readonly clients: Clients;
  /** Where connections are counted; without it nobody asks. */
  readonly connections?: ConnectionFigures;
  /** Takes the authorities whose clients TLS lets in, whenever they were read. */
  readonly onClientAuthorities?: (authorities: readonly X509Certificate[]) => void;
}

/** How many a stop accepts yet, where more and more arrive: the system holds at most 511, by Node's backlog. */
const MAX_ARRIVED = 512;

/** Why a connection is not served. */
const TOO_MANY: Readonly<Record<Crowd, Problem>> = {
  all: problem("overloaded", { detail: "Too many connections are open." }),
  client: problem("overloaded", { detail: "Too many connections of this address are open." }),
};

const TOO_MANY_HEADERS = problem("header-too-large", { detail: `At most ${MAX_HEADERS} headers are accepted.` });

const PLAIN_REQUEST = problem("bad-request", {
  detail: "This address is served by TLS only: its URLs begin with https://.",
});

/** A node:http server that passes its requests to the dispatcher, and answers what is not HTTP. */
export class HttpServer {
  readonly #dispatcher: Sink;
  readonly #responder: Responder;
  readonly #log: Log;
  readonly #ends: StagedEnds;
  readonly #clientErrors: ClientErrors;
  readonly #server: PatientServer;
  readonly #gate: ConnectionGate;
  readonly #clock: Clock;
  readonly #limits: RequestLimits;
  readonly #sessions: Sessions;
  readonly #connections: ConnectionFigures;
  readonly #onClientAuthorities: (authorities: readonly X509Certificate[]) => void;
  /** Where connections by TCP become TLS connections; `null` in a server without TLS. */
  #door: TlsDoor | null = null;
  #listeners: readonly Listener[] = [];
  #isStopping = false;
  #isCut = false;
  /** Connections since the start, also those that were turned away. */
  #arrivals = 0;

  constructor(options: HttpServerOptions) {
    const { dispatcher, responder, clock, log, clients, limits = REQUEST_LIMITS } = options;
    this.#dispatcher = dispatcher;
    this.#responder = responder;
    this.#log = log;
    this.#clock = clock;
    this.#limits = limits;
    this.#connections = options.connections ?? new ConnectionFigures();
    this.#onClientAuthorities = options.onClientAuthorities ?? (() => undefined);
    this.#sessions = http2Sessions({ dispatcher, clock, log, clients, limits });
    this.#ends = new StagedEnds(clock);
    this.#clientErrors = new ClientErrors(responder, this.#ends, (socket) => this.#server.answerUnderWay(socket));
    // A missing Host is refused by the dispatcher, in words.
    this.#server = new PatientServer(
      { ...limits, requireHostHeader: false, insecureHTTPParser: false },
      (req, connection) => !hasTooManyHeaders(req) && dispatcher.handleDirect(req, connection),
      (socket) => this.#endAfterLast(socket),
      { sparedMs: limits.nextRequestTimeout, nowMs: () => clock.nowMs() },
    );
    // Node silently drops headers past this count; one more than there may be shows that there are too many.
    this.#server.maxHeadersCount = MAX_HEADERS + 1;
    this.#listenForRequests();
    this.#listenForFaults();
    const refuse = (socket: Socket, crowd: Crowd): void => this.#clientErrors.turnAway(socket, TOO_MANY[crowd]);
    const { connectionLimit, connectionsByClient } = options;
    this.#gate = new ConnectionGate(connectionLimit, connectionsByClient, this.#connections, log, refuse);
  }

  #listenForRequests(): void {
    this.#server.on("request", (req, res) => {
      if (!req.handOver(res)) this.#handle(req, res, {});
    });
    this.#server.on("checkContinue", (req, res) => this.#handle(req, res, { awaitsContinue: true }));
    this.#server.on("checkExpectation", (req, res) =>
      this.#handle(req, res, { refusal: problem("expectation-failed") }),
    );
  }

  #listenForFaults(): void {
    // What listens on a port has sockets of node:net: that the types say less is for other transports.
    this.#server.on("clientError", (error, socket) => this.#clientErrors.answer(error, socket as Socket)); // see above
    this.#server.on("connect", (_req, socket) => {
      // Node has taken its own listener away: a client that resets the connection would end the process.
      socket.on("error", () => socket.destroy());
      this.#clientErrors.close(socket as Socket, problem("method-not-allowed", { allow: STREAM_METHODS })); // see above
    });
  }

  #handle(req: DirectRequest, res: ServerResponse, arrival: Arrival): void {
    if (!req.socket.writable) return this.#drop(req);
    if (!hasTooManyHeaders(req)) return this.#dispatcher.handle(req, res, arrival);
    // What says how the request ends, or what follows it, may be among those that are dropped.
    res.shouldKeepAlive = false;
    this.#dispatcher.handle(req, res, { ...arrival, refusal: TOO_MANY_HEADERS });
  }

  /**
   * Drops what follows the last answer of a connection: it could not be answered. Left unread, it would hide that the
   * client ends its side.
   */
  #drop(req: IncomingMessage): void {
    if (this.#ends.isDeaf(req.socket)) req.on("data", () => this.#ends.isDeaf(req.socket));
  }

  #endAfterLast(socket: Socket): void {
    if (this.#clientErrors.isWaiting(socket)) return;
    // A stopping server does not wait for what its clients still send.
    if (this.#isStopping) return Socket.prototype.destroySoon.call(socket);
    this.#ends.end(socket);
    for (const req of this.#dispatcher.waitingOn(socket)) this.#drop(req);
  }

  /** Listens on all addresses of the plan, or on none. Throws {@link ListenError} and {@link CertificateError}. */
  async listen({ addresses, unixMode, reach, tls }: ListenPlan): Promise<readonly Listener[]> {
    const onSecure = (socket: TLSSocket, protocol: "h2" | "http/1.1"): void => this.#serveSecurely(socket, protocol);
    const plainAnswer = this.#responder.rawProblem(PLAIN_REQUEST);
    const onFailure = (reason: TlsFailure): void => this.#connections.tlsFailed(reason);
    const onEnd = (endsAtMs: number): void => void (this.#connections.certificateEndsAtMs = endsAtMs);
    const onRead = (isCurrent: boolean): void => void (this.#connections.isTlsCurrent = isCurrent);
    const parts = { clock: this.#clock, log: this.#log, onClientAuthorities: this.#onClientAuthorities };
    const told = { onSecure, onFailure, onEnd, onRead };
    if (tls !== null)
      this.#door = await TlsDoor.open({ files: tls, plainAnswer, ...told, ...parts }).catch((error: unknown) => {
        // It looks for late requests since it was made.
        this.#server.close();
        throw error;
      });
    const options = {
      unixMode,
      reach,
      onConnection: (socket: Socket, listener: Listener) => this.#accept(socket, listener),
      onFault: (error: Error) => this.#log.error("the HTTP server has a fault", { fault: error.message }),
    };
    const opened = await Promise.allSettled(addresses.map((address) => Listener.open(address, options)));
    this.#listeners = opened.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    const failed = opened.find((result) => result.status === "rejected");
    if (failed === undefined) return this.#listeners;
    this.destroyConnections();
    await this.close();
    throw failed.reason;
  }

  /** Who reaches a Unix socket is on this machine: there is no TLS. */
  #accept(socket: Socket, { isUnix }: Listener): void {
    this.#arrivals += 1;
    if (this.#isCut) return void socket.destroy();
    const door = isUnix ? null : this.#door;
    if (!this.#gate.admit(socket, door === null)) return;
    if (door === null) this.#server.emit("connection", socket);
    else door.accept(socket);
  }

  #serveSecurely(socket: TLSSocket, protocol: "h2" | "http/1.1"): void {
    if (protocol === "h2") this.#sessions.accept(socket);
    else this.#server.emit("connection", socket);
  }

  /** Reads the certificate again; true where that is in use now, or there is none. */
  reloadCertificate(): Promise<boolean> {
    return this.#door?.reload() ?? Promise.resolve(true);
  }

  /**
   * Accepts what has arrived, stops accepting, and closes idle connections. One that has not asked yet, or was answered
   * a moment ago, is given time for a request: its client could not know that the server stops. Resolves when the last
   * one is gone.
   */
  async close(): Promise<void> {
    this.#isStopping = true;
    const { firstRequestTimeout, nextRequestTimeout } = this.#limits;
    // A connection that still sends an answer would otherwise be kept for long.
    this.#server.keepAliveTimeout = nextRequestTimeout;
    await this.#acceptArrived();
    const gone = this.#listeners.map((listener) => listener.close());
    this.#door?.close();
    this.#sessions.close();
    afterReading(() => this.#server.close());
    const timers = [
      this.#clock.after(nextRequestTimeout, () => afterReading(() => this.#server.closeAnsweredConnections())),
      this.#clock.after(firstRequestTimeout, () => {
        this.#server.closeUnusedConnections();
        this.#door?.cutHandshakes();
      }),
    ];
    await Promise.all(gone);
    for (const timer of timers) timer.cancel();
  }

  /**
   * Connections that the system holds and this process has not taken yet would be reset, and Node takes one in a turn
   * of the event loop. Where all are cut that is at once.
   */
  async #acceptArrived(): Promise<void> {
    const most = this.#arrivals + MAX_ARRIVED;
    for (let quietTurns = 0; quietTurns < 2 && !this.#isCut && this.#arrivals < most; quietTurns += 1) {
      const before = this.#arrivals;
      await new Promise<void>((resolve) => afterReading(resolve));
      if (this.#arrivals > before) quietTurns = -1;
    }
  }

  /** Cuts all connections, and those that are yet to come. */
  destroyConnections(): void {
    this.#isCut = true;
    this.#door?.cutHandshakes();
    this.#server.closeAllConnections();
    this.#sessions.destroy();
    this.#gate.destroyTurnedAway();
  }
}

function hasTooManyHeaders({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length > 2 * MAX_HEADERS;
}

/** The platform's own: a stop is not to wait for the false timers of a program's tests. */
const nextTurn = setImmediate;

/** Calls `run` when all that the system has received by now was read: after the next turn of the event loop. */
function afterReading(run: () => void): void {
  nextTurn(() => nextTurn(run));
}
