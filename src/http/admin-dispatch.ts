// Answers on the addresses of `--admin-listen`.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { KIND } from "../metrics/request-figures.js";
import { isLoopbackAddress } from "../net/host-name.js";
import { InFlight } from "./answer/in-flight.js";
import { Responder } from "./answer/respond.js";
import { SitePolicy } from "./access/site-policy.js";
import type { Context } from "./context/context.js";
import { guard } from "./context/guard.js";
import { TOO_MANY_WAIT, type Arrival, type Sink } from "./dispatch.js";
import { CorsPolicy, READ_METHODS } from "./encoding/cors.js";
import { problem, type Problem } from "./encoding/problems.js";
import { Exchange } from "./exchange/exchange.js";
import { faultOfHead } from "./exchange/head-fault.js";
import { health, livez, readyz } from "./handlers/health.js";
import { metrics } from "./handlers/metrics.js";
import { Pipeline } from "./pipeline.js";
import { readHeaders } from "./request/request-headers.js";
import { hostOf, splitTarget } from "./request/target.js";

/** What is answered: without credentials, and until the last stream is. */
const PAGES: Readonly<Record<string, (context: Context, service: Context, exchange: Exchange) => void>> = {
  "/metrics": (own, service, exchange) => metrics(service, own.responder, exchange),
  "/livez": (own, _service, exchange) => livez(own, exchange),
  "/readyz": (own, { inFlight }, exchange) => readyz({ ...own, inFlight }, exchange),
  "/health": (own, { inFlight }, exchange) => health({ ...own, inFlight }, exchange),
};

/** Leads requests of those who watch the server to the four pages for them, which count nowhere. */
export class AdminDispatcher implements Sink {
  readonly responder: Responder;
  readonly #service: Context;
  readonly #own: Context;
  readonly #site: SitePolicy;
  readonly #pipeline = new Pipeline();

  /** `service` is what is watched. */
  constructor(service: Context) {
    const { unread, clock, log, settings } = service;
    // A server that stops goes on telling so here: its own requests in flight are none of these.
    const inFlight = new InFlight();
    const cors = new CorsPolicy("loopback");
    this.responder = new Responder({ cors, inFlight, unread, clock, log });
    this.#site = new SitePolicy({
      cors,
      allowHost: settings.allowHost,
      checksHosts: !settings.insecure,
      isCertifiedFor: () => false,
    });
    this.#service = service;
    this.#own = { ...service, inFlight, responder: this.responder };
  }

  /** There are few requests: each goes the general way. */
  handleDirect(): boolean {
    return false;
  }

  /** There is no TLS on these addresses, and so no HTTP/2. */
  handleStream(): void {
    throw new Error("HTTP/2 is not served on the addresses of --admin-listen");
  }

  waitingOn(socket: Socket): readonly IncomingMessage[] {
    return this.#pipeline.waitingOn(socket);
  }

  /** Answers a request, now or later. Never throws. */
  handle(req: IncomingMessage, res: ServerResponse, { awaitsContinue = false, refusal }: Arrival = {}): void {
    const exchange = new Exchange(req, res, splitTarget(req.url ?? ""), readHeaders(req.rawHeaders), awaitsContinue);
    const fault = refusal ?? faultOfHead(exchange);
    exchange.headers.host = hostOf(req.url ?? "", exchange.headers.host);
    if (this.#pipeline.inTurn(req, res, () => this.#begin(exchange, fault))) return;
    exchange.forgetSentHeaders();
    // As in the general dispatcher.
    exchange.awaitsContinue = false;
    this.#begin(exchange, TOO_MANY_WAIT);
  }

  #begin(exchange: Exchange, refusal: Problem | null): void {
    const own = this.#own;
    own.inFlight.begin(exchange);
    guard(own, exchange, () => this.#answer(exchange, refusal));
  }

  /**
   * Nothing but the loopback device keeps others out there, and a page could rebind its own name to it. A private
   * network has names of its own, which nobody lists here.
   */
  #refusalOfHost(exchange: Exchange): Problem | null {
    const { localAddress } = exchange.req.socket;
    const isOnLoopback = localAddress !== undefined && isLoopbackAddress(localAddress);
    return isOnLoopback ? this.#site.refusalOfHost(exchange) : null;
  }

  #answer(exchange: Exchange, refusal: Problem | null): void {
    const { method } = exchange.req;
    const page = Object.hasOwn(PAGES, exchange.target.path) ? PAGES[exchange.target.path] : undefined;
    exchange.kind = KIND.health;
    const refused = refusal ?? this.#refusalOfHost(exchange);
    if (refused !== null) return this.responder.refuse(exchange, refused);
    if (page === undefined) {
      const detail = `Here are ${Object.keys(PAGES).join(", ")}.`;
      return this.responder.refuse(exchange, problem("unknown-path", { detail }));
    }
    if (method === "OPTIONS") return this.responder.preflight(exchange);
    if (method === "GET" || method === "HEAD") return page(this.#own, this.#service, exchange);
    this.responder.refuse(exchange, problem("method-not-allowed", { allow: READ_METHODS }));
  }
}
