import type { IncomingMessage, ServerResponse } from "node:http";
import type { HeldBody } from "../bounds/body-memory.js";
import { DirectConnection, type LoneExchange } from "../node/direct-connection.js";
import { DirectRequest } from "../node/direct-request.js";
import { OwnResponse } from "../node/own-response.js";
import { RequestHeaders } from "../request/request-headers.js";
import type { Target } from "../request/target.js";

const NO_HEADERS: RequestHeaders = Object.freeze(new RequestHeaders());

/** One request on its way to its answer. */
export class Exchange implements LoneExchange {
  readonly req: IncomingMessage;
  readonly target: Target;
  headers: RequestHeaders;
  /** Whether the client has promised a body that has not been read to its end. */
  bodyPending: boolean;
  /** Whether the client holds its body back until it is told to continue. */
  awaitsContinue: boolean;
  /** Whether it was in turn when it came, and the event that brought it is still handled. */
  arriving = false;
  /** Its place among the requests in flight; negative when it is not among them. */
  slot = -1;
  /** Its body, once some of it is in memory. */
  body: HeldBody | null = null;
  #isDecided = false;
  #res: ServerResponse | null;
  /** Takes the answer while there is no `#res`. */
  readonly #direct: DirectConnection | null;
  #onGone: (() => void) | null = null;
  #onClientEnd: (() => void) | null = null;

  /** `answer` is Node's, or the connection where one is only made when something asks for it. */
  constructor(req: IncomingMessage, answer: ServerResponse | DirectConnection, target: Target, headers: RequestHeaders, awaitsContinue: boolean) {
    const isDirect = answer instanceof DirectConnection;
    this.req = req;
    this.#res = isDirect ? null : answer;
    this.#direct = isDirect ? answer : null;
    this.target = target;
    this.headers = headers;
    this.bodyPending = headers.hasBody;
    this.awaitsContinue = awaitsContinue;
  }

  /** The connection, where the answer may go there in one piece; `null` where it goes through {@link res}. */
  get direct(): DirectConnection | null {
    return this.#res === null ? this.#direct : null;
  }

  /** Node's own answer, made when it is first asked for. */
  get res(): ServerResponse {
    if (this.#res === null) this.#direct?.handOver();
    if (this.#res === null) throw new Error("Node has made no answer");
    return this.#res;
  }

  /** Whether its answer is decided on, or has begun. */
  get isAnswered(): boolean {
    return this.#isDecided || this.#res?.headersSent === true;
  }

  /** Whether something of its answer is out, or is on its way. */
  get isOut(): boolean {
    return this.#res === null ? this.#direct?.isBusy !== true : this.#res.headersSent;
  }

  /** What it is answered is decided on. */
  decide(): void {
    this.#isDecided = true;
  }

  /** Whether nobody is left to answer. */
  get isGone(): boolean {
    return this.#res === null ? this.req.socket.destroyed : this.#res.destroyed;
  }

  /** Calls `react` when the client has gone; perhaps also when it has its answer. */
  onGone(react: () => void): void {
    if (this.#res === null) this.#onGone = react;
    else this.#res.on("close", react);
  }

  /** Whether the client has ended its side: it sends nothing more, and may wait for its answer or be gone. */
  get hasClientEnded(): boolean {
    return this.req.socket.readableEnded;
  }

  /**
   * Calls `react` when the client ends its side before it has its answer. In somebody else's server the answer is over
   * with that, and {@link onGone} tells.
   */
  onClientEnd(react: () => void): void {
    this.#onClientEnd = react;
    if (this.#res instanceof OwnResponse) this.#res.onClientEnd = react;
  }

  /** Whether its answer is the last one of its connection: bytes behind an `Upgrade` may be another protocol's. */
  get isLast(): boolean {
    return this.headers.upgrades;
  }

  takeResponse(res: ServerResponse): void {
    this.#res = res;
    if (this.#onGone !== null) res.on("close", this.#onGone);
    if (res instanceof OwnResponse) res.onClientEnd = this.#onClientEnd;
    // Node would wait for an event that was before.
    if (this.req.socket.destroyed) res.destroy();
  }

  abandon(): void {
    this.req.destroy();
    this.#onGone?.();
  }

  /** Whether it came to a server of ours: in somebody else's there may be who keeps or changes what is sent. */
  get isOwn(): boolean {
    return this.#res === null || this.#res instanceof OwnResponse;
  }

  /**
   * Lets go of the request's headers, where an answer has begun that lasts: a browser sends 1 KB of them, and all are
   * there thrice.
   */
  forgetHeaders(): void {
    this.headers = NO_HEADERS;
    // In somebody else's server they may still be asked for.
    if (this.req instanceof DirectRequest) this.req.forgetHeaders();
  }
}
