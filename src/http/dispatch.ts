// Routes each request to its handler.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { decodeName } from "../protocol/names/stream-name.js";
import { chain } from "../stream/loaded/chain.js";
import type { MaybePromise, Stream } from "../stream/loaded/stream.js";
import { KIND } from "../metrics/request-figures.js";
import type { Context } from "./context/context.js";
import { READ_METHODS, STREAM_METHODS, TICKET_METHODS } from "./encoding/cors.js";
import type { DirectConnection } from "./node/direct-connection.js";
import { DirectRequest } from "./node/direct-request.js";
import { Exchange } from "./exchange/exchange.js";
import { guard } from "./context/guard.js";
import { FrontPage } from "./handlers/front-page.js";
import { append } from "./handlers/append.js";
import { create } from "./handlers/create.js";
import { remove } from "./handlers/delete.js";
import { head } from "./handlers/head.js";
import { health, livez, readyz } from "./handlers/health.js";
import { metrics } from "./handlers/metrics.js";
import { list } from "./handlers/list.js";
import { answerFacts } from "./handlers/page-facts.js";
import { PAGE_PATH } from "../net/page-address.js";
import { Page, PAGE_FACTS_PATH } from "./handlers/page.js";
import { longPoll } from "./handlers/long-poll.js";
import { read } from "./handlers/read.js";
import { lastEventOffset, sse } from "./handlers/sse.js";
import { issueTicket } from "./handlers/tickets.js";
import { faultOfHead } from "./exchange/head-fault.js";
import type { StreamAnswer } from "./http2/stream-answer.js";
import type { StreamRequest } from "./http2/stream-request.js";
import { Pipeline } from "./pipeline.js";
import { isProblem, problem, type Problem } from "./encoding/problems.js";
import { mountOf } from "./request/mount.js";
import { parseReadQuery } from "./request/query.js";
import { readHeaders } from "./request/request-headers.js";
import { ListFeed } from "./reading/list/list-feed.js";
import { SseFeeds } from "./reading/sse-feed.js";
import { hostOf, splitTarget, type Target } from "./request/target.js";
import { staggerEnds } from "./reading/staggered-ends.js";
import { WaitingRooms } from "./reading/long-polls.js";

const HEALTH_PATH = "/health";
/** Beside the streams. */
const LIVE_PATH = "/livez";
const READY_PATH = "/readyz";
const METRICS_PATH = "/metrics";
const ROOT_PATH = "/";
/** Below the prefix. */
const TICKETS = "__ds/tickets";
const LIST = "__ds/streams";
const PAGE_FOLDER = PAGE_PATH.slice(0, -1);
const NO_PAGE = "The page is not served here; the server's option --ui serves it to all.";
/** The bodies of other methods say nothing. */
const TAKE_BODIES: ReadonlySet<string> = new Set(["POST", "PUT"]);

/** Why a pipelined request is refused, and those after it dropped. */
export const TOO_MANY_WAIT = problem("overloaded", { detail: "Too many requests wait on this connection." });

/** How a request arrived. */
export interface Arrival {
  /** Whether the client waits for `100 Continue` before it sends its body. */
  readonly awaitsContinue?: boolean;
  /** What is already known to be wrong with it. */
  readonly refusal?: Problem;
  /** Called instead of answering 404 when the path is not ours. */
  readonly next?: (() => void) | undefined;
}

/** Takes the requests of a server, from each of their ways in. */
export interface Sink {
  /** Answers a request, now or later. Never throws. */
  handle(req: IncomingMessage, res: ServerResponse, arrival?: Arrival): void;
  /** The same for one that has its connection to itself; false where it needs Node's own answer. */
  handleDirect(req: DirectRequest, connection: DirectConnection): boolean;
  /** The same for a stream of HTTP/2. */
  handleStream(req: StreamRequest, res: StreamAnswer, refusal: Problem | null): void;
  /** The requests of a connection that wait for the answers before theirs. */
  waitingOn(socket: Socket): readonly IncomingMessage[];
}

/** Leads each request to its handler. */
export class Dispatcher implements Sink {
  readonly #context: Context;
  readonly #pipeline = new Pipeline();
  readonly #frontPage: FrontPage;
  readonly #page: Page;
  readonly #waitingRooms: WaitingRooms;
  readonly #sseFeeds: SseFeeds;
  readonly #listFeed: ListFeed;

  constructor(context: Context) {
    this.#context = context;
    this.#page = new Page(context);
    this.#frontPage = new FrontPage(context, this.#page);
    this.#waitingRooms = new WaitingRooms(context);
    this.#sseFeeds = new SseFeeds(context);
    this.#listFeed = new ListFeed(context);
  }

  /** Answers a request, now or later. Never throws. */
  handle(req: IncomingMessage, res: ServerResponse, arrival: Arrival = {}): void {
    const target = splitTarget(req.url ?? "");
    if (arrival.next !== undefined && !this.#isOurs(target)) return arrival.next();
    const exchange = new Exchange(req, res, target, readHeaders(req.rawHeaders), arrival.awaitsContinue ?? false);
    if (!exchange.isOwn) this.#findMount(exchange);
    if (!exchange.bodyPending && req instanceof DirectRequest) req.expectNoBody();
    exchange.arriving = true;
    const isTaken = this.#pipeline.inTurn(req, res, () =>
      this.#begin(exchange, arrival.refusal ?? faultOfHead(exchange)),
    );
    exchange.arriving = false;
    if (isTaken) return;
    exchange.forgetSentHeaders();
    // It gets its answer in its turn; to end the connection now would cut off those before it.
    exchange.awaitsContinue = false;
    this.#begin(exchange, TOO_MANY_WAIT);
  }

  /**
   * Like {@link handle}, for a request that has its connection to itself; false where it needs Node's own answer from
   * the beginning.
   */
  handleDirect(req: DirectRequest, connection: DirectConnection): boolean {
    const headers = readHeaders(req.rawHeaders);
    if (headers.expects || headers.upgrades) return false;
    const exchange = new Exchange(req, connection, splitTarget(req.url ?? ""), headers, false);
    if (!exchange.bodyPending) req.expectNoBody();
    connection.begin(exchange);
    exchange.arriving = true;
    this.#begin(exchange, faultOfHead(exchange));
    exchange.arriving = false;
    return true;
  }

  /** Like {@link handle}, for a stream of HTTP/2, which waits for no other. */
  handleStream(req: StreamRequest, res: StreamAnswer, refusal: Problem | null): void {
    const headers = readHeaders(req.rawHeaders, req.hasBody);
    const { expect } = req.headers;
    const awaitsContinue = expect?.toLowerCase() === "100-continue";
    const exchange = new Exchange(req, res, splitTarget(req.url ?? ""), headers, awaitsContinue);
    const unknown = expect === undefined || awaitsContinue ? null : problem("expectation-failed");
    if (req.hasBody && !TAKE_BODIES.has(req.method ?? "")) {
      req.dropBody();
      res.refuseRest();
    }
    this.#begin(exchange, refusal ?? unknown ?? faultOfHead(exchange));
  }

  /** The requests of a connection that wait for the answers before theirs. */
  waitingOn(socket: Socket): readonly IncomingMessage[] {
    return this.#pipeline.waitingOn(socket);
  }

  /** In front of a fork's source too, it is taken off: here, so that the source is the one whose right is asked for. */
  #findMount(exchange: Exchange): void {
    const { req, target, headers } = exchange;
    const mount = mountOf(req, target.path);
    exchange.mount = mount;
    if (headers.streamForkedFrom?.startsWith(mount + this.#context.settings.prefix) === true)
      headers.streamForkedFrom = headers.streamForkedFrom.slice(mount.length);
  }

  /** Once its own `Host` is checked. */
  #begin(exchange: Exchange, refusal: Problem | null): void {
    const { req, headers } = exchange;
    headers.host = hostOf(req.url ?? "", headers.host);
    this.#context.clients.identify(exchange);
    this.#context.inFlight.begin(exchange);
    const { responder } = this.#context;
    guard(this.#context, exchange, () =>
      refusal === null ? this.#route(exchange) : responder.refuse(exchange, refusal),
    );
  }

  /**
   * Ends all live reads, within the time for a stop. Later requests are refused by {@link handle}, once `inFlight` is
   * closing.
   */
  endLiveReads(): void {
    const ends = [...this.#sseFeeds.ends(), ...this.#listFeed.ends(), ...this.#waitingRooms.ends()];
    staggerEnds(this.#context, ends, this.#context.settings.shutdownTimeoutMs);
  }

  #isOurs({ path }: Target): boolean {
    return path === HEALTH_PATH || path.startsWith(this.#context.settings.prefix);
  }

  /** Where streams are below `/`, all names are theirs; in an embedding server the paths beside them are its own. */
  #isBeside({ isOwn, target }: Exchange): boolean {
    return isOwn && !target.path.startsWith(this.#context.settings.prefix);
  }

  #route(exchange: Exchange): MaybePromise<void> {
    const { responder, inFlight, settings } = this.#context;
    const { prefix } = settings;
    const { path } = exchange.target;
    if (path === HEALTH_PATH) return this.#routePage(exchange, KIND.health, () => health(this.#context, exchange));
    if (path === LIVE_PATH && this.#isBeside(exchange))
      return this.#routePage(exchange, KIND.health, () => livez(this.#context, exchange));
    if (path === READY_PATH && this.#isBeside(exchange))
      return this.#routePage(exchange, KIND.health, () => readyz(this.#context, exchange));
    const stranger = this.#context.access.site.refusalOfHost(exchange);
    if (stranger !== null) return responder.refuse(exchange, stranger);
    if (path === ROOT_PATH && prefix !== ROOT_PATH)
      return this.#routePage(exchange, KIND.page, () => this.#frontPage.answer(exchange));
    if (path === METRICS_PATH && settings.adminListen === "" && this.#isBeside(exchange))
      return this.#routePage(exchange, KIND.metrics, () => this.#metrics(exchange));
    if (exchange.req.method === "OPTIONS" && (path === "*" || this.#isOurs(exchange.target)))
      return responder.preflight(exchange);
    if (!path.startsWith(prefix))
      return responder.refuse(
        exchange,
        problem("unknown-path", { detail: `Streams are below ${exchange.mount}${prefix}.` }),
      );
    if (inFlight.over) return responder.refuse(exchange, problem("shutting-down"));
    if (path.length === prefix.length && this.#asksForPage(exchange))
      return this.#routePage(exchange, KIND.page, () => this.#frontPage.answer(exchange));
    if (path.length === prefix.length + TICKETS.length && path.endsWith(TICKETS) && this.#context.access.isGuarded)
      return this.#routeTickets(exchange);
    if (path.length === prefix.length + LIST.length && path.endsWith(LIST)) return this.#routeList(exchange);
    if (isPage(path.slice(prefix.length))) {
      if (this.#page.isFor(exchange)) return this.#routeUi(exchange);
      return responder.refuse(exchange, problem("invalid-name", { detail: NO_PAGE }));
    }
    const decoded = decodeName(path.slice(prefix.length));
    if ("fault" in decoded) return responder.refuse(exchange, problem("invalid-name", { detail: decoded.fault }));
    return this.#routeStream(exchange, decoded.name);
  }

  /**
   * Whether the page is asked for. A request with a query is the read of a stream without a name, and is refused as
   * that.
   */
  #asksForPage({ req: { method }, target }: Exchange): boolean {
    return (method === "GET" || method === "HEAD") && target.query === "";
  }

  #metrics(exchange: Exchange): MaybePromise<void> {
    const { access, responder } = this.#context;
    return chain(access.refusalOfAdmin(exchange), (refusal) => {
      if (refusal !== null) responder.refuse(exchange, refusal);
      else metrics(this.#context, responder, exchange);
    });
  }

  #routePage(exchange: Exchange, kind: number, answer: () => MaybePromise<void>): MaybePromise<void> {
    const { responder } = this.#context;
    exchange.kind = kind;
    switch (exchange.req.method) {
      case "GET":
      case "HEAD":
        return answer();
      case "OPTIONS":
        return responder.preflight(exchange);
      default:
        return responder.refuse(exchange, problem("method-not-allowed", { allow: READ_METHODS }));
    }
  }

  #routeStream(exchange: Exchange, name: string): MaybePromise<void> {
    const { responder, settings } = this.#context;
    const { method } = exchange.req;
    exchange.kind = kindOf(method);
    exchange.name = name;
    if (method === "GET" || method === "HEAD") return this.#whereAllowed(exchange, name);
    if (method === "POST" || method === "PUT" || method === "DELETE") {
      if (settings.readOnly) return responder.refuse(exchange, problem("read-only", { allow: READ_METHODS }));
      return this.#whereAllowed(exchange, name);
    }
    const allow = settings.readOnly ? READ_METHODS : STREAM_METHODS;
    return responder.refuse(exchange, problem("method-not-allowed", { allow }));
  }

  /** Nothing is looked up, and no body read, before it is known that the client may ask. */
  #whereAllowed(exchange: Exchange, name: string): MaybePromise<void> {
    const refusal = this.#context.access.refusalOf(exchange, name);
    if (refusal === null) return this.#serve(exchange, name);
    if (!(refusal instanceof Promise)) return this.#context.responder.refuse(exchange, refusal);
    return refusal.then((late) =>
      late === null ? this.#serve(exchange, name) : this.#context.responder.refuse(exchange, late),
    );
  }

  #serve(exchange: Exchange, name: string): MaybePromise<void> {
    switch (exchange.req.method) {
      case "POST":
        return append(this.#context, exchange, name);
      case "PUT":
        return create(this.#context, exchange, name);
      case "DELETE":
        return remove(this.#context, exchange, name);
      case "HEAD":
        return head(this.#context, exchange, name);
      default:
        return this.#routeRead(exchange, name);
    }
  }

  #routeTickets(exchange: Exchange): MaybePromise<void> {
    exchange.kind = KIND.ticket;
    if (exchange.req.method === "POST") return issueTicket(this.#context, exchange);
    return this.#context.responder.refuse(exchange, problem("method-not-allowed", { allow: TICKET_METHODS }));
  }

  #routeList(exchange: Exchange): MaybePromise<void> {
    const readersOf = (stream: Stream): number =>
      this.#sseFeeds.readersOf(stream) + this.#waitingRooms.readersOf(stream);
    return this.#routePage(exchange, KIND.list, () => list(this.#context, this.#listFeed, readersOf, exchange));
  }

  #routeUi(exchange: Exchange): MaybePromise<void> {
    const path = exchange.target.path.slice(this.#context.settings.prefix.length);
    return this.#routePage(exchange, KIND.page, () => {
      if (path === PAGE_FOLDER) this.#page.redirect(exchange);
      else if (path === PAGE_FACTS_PATH) return answerFacts(this.#context, exchange);
      else this.#page.answer(exchange, path.slice(PAGE_PATH.length));
    });
  }

  #routeRead(exchange: Exchange, name: string): MaybePromise<void> {
    const query = parseReadQuery(exchange.target.query, this.#context.clock.nowMs());
    if (isProblem(query)) return this.#context.responder.refuse(exchange, query);
    const { live, cursor } = query;
    if (live !== null) exchange.kind = KIND[live];
    if (live === null) return read(this.#context, exchange, name, query.offset);
    const resumed = live === "sse" ? lastEventOffset(exchange.headers.lastEventId) : null;
    const offset = resumed ?? query.offset;
    if (offset === null)
      return this.#context.responder.refuse(
        exchange,
        problem("invalid-offset", { detail: "A live read needs an offset, or last or since." }),
      );
    if (live === "sse") return sse(this.#context, this.#sseFeeds, exchange, name, { offset, cursor });
    return longPoll(this.#context, this.#waitingRooms, exchange, name, { offset, cursor });
  }
}

function isPage(path: string): boolean {
  return path.startsWith(PAGE_PATH) || path === PAGE_FOLDER;
}

/** What a request on a stream asks for, as far as its method says it; a live read is one once its query was read. */
function kindOf(method: string | undefined): number {
  switch (method) {
    case "GET":
      return KIND.read;
    case "POST":
      return KIND.append;
    case "PUT":
      return KIND.create;
    case "DELETE":
      return KIND.delete;
    case "HEAD":
      return KIND.head;
    default:
      return KIND.other;
  }
}
