import type { ServerResponse } from "node:http";
import type { Caller } from "../../auth/rights/caller.js";
import { senderOf } from "../../auth/rights/sender.js";
import { KIND } from "../../metrics/request-figures.js";
import type { HeldBody } from "../bounds/body-memory.js";
import { clientAddressOf } from "../bounds/client-address.js";
import { DirectConnection, type LoneExchange } from "../node/direct-connection.js";
import { DirectRequest } from "../node/direct-request.js";
import { StreamAnswer } from "../http2/stream-answer.js";
import { StreamRequest } from "../http2/stream-request.js";
import { ID_ENDS, type CommonHeaders } from "../encoding/head.js";
import type { ProblemCode } from "../encoding/problems.js";
import type { Inbound, Outbound } from "../node/message.js";
import { OwnResponse } from "../node/own-response.js";
import type { HeldRight, RightHolder, Rights } from "./held-right.js";
import { RequestHeaders } from "../request/request-headers.js";
import type { Target } from "../request/target.js";

const NO_HEADERS: RequestHeaders = Object.freeze(new RequestHeaders());

/** Where the bytes of a request and of its answer are charged. */
export interface Account {
  charge(bytes: number): void;
}

/** One request and its answer. */
export class Exchange implements LoneExchange, RightHolder {
  readonly req: Inbound;
  readonly target: Target;
  headers: RequestHeaders;
  /** Whether the client has promised a body that has not been read to its end. */
  bodyPending: boolean;
  /** Whether the client waits for `100 Continue` before it sends its body. */
  awaitsContinue: boolean;
  /** Whether it was its turn on arrival, and the event that brought it is still being handled. */
  arriving = false;
  /** What it asks for: the index of a {@link RequestKind}. */
  kind = KIND.other;
  /** When it arrived, in milliseconds of the clock that {@link InFlight} measures with. */
  beganAtMs = 0;
  /** The status of its answer; 0 until that is decided. */
  status = 0;
  /** The code of the problem that it is refused with. */
  code: ProblemCode | null = null;
  /** What it is called across servers, but for the digits at its end; `null` where requests are not named. */
  idStart: string | null = null;
  /** Those digits, as a number; negative where the name is one that it came with, and has no others. */
  idNumber = -1;
  /** What an embedding server has taken off in front of its path. */
  mount = "";
  /** The stream that it is for; `null` where it is for none, or that is not known yet. */
  name: string | null = null;
  /** Who sent it, where there is an auth file and that knows. */
  caller: Caller | null = null;
  /** The offset that its answer ends at, where that is known. */
  nextOffset: string | null = null;
  /** Bytes of its body that came. */
  receivedBytes = 0;
  /** Bytes of the answer's body, or of events, that were sent. */
  sentBytes = 0;
  /** Whether it has begun to wait for more: how long it lasts from there on says nothing of the server. */
  isWaiting = false;
  /** Its slot among the requests in flight; negative when it is not among them. */
  slot = -1;
  /** What looks after its caller's right while it is served; `null` where everybody has every right. */
  rights: Rights | null = null;
  changesSeen = 0;
  /** In place of the headers of all answers; `null` for these. */
  commonHeaders: CommonHeaders | null = null;
  /** Where its bytes are charged; `null` where they are not limited, and for live readers. */
  account: Account | null = null;
  /** Called once when it is over, for a live reader that is counted until then. */
  onLeave: (() => void) | null = null;
  /** Its body, once some of it is in memory. */
  body: HeldBody | null = null;
  #heldRight: HeldRight | null = null;
  #client: string | null = null;
  #isDecided = false;
  #res: Outbound | null;
  /** Takes the answer while there is no `#res`. */
  readonly #direct: DirectConnection | null;
  #onGone: (() => void) | null = null;
  #onClientEnd: (() => void) | null = null;

  /** `answer` is what the answer goes out by, or the connection where that is created on demand. */
  constructor(
    req: Inbound,
    answer: Outbound | DirectConnection,
    target: Target,
    headers: RequestHeaders,
    awaitsContinue: boolean,
  ) {
    const isDirect = answer instanceof DirectConnection;
    this.req = req;
    this.#res = isDirect ? null : answer;
    this.#direct = isDirect ? answer : null;
    this.target = target;
    this.headers = headers;
    this.bodyPending = headers.hasBody;
    this.awaitsContinue = awaitsContinue;
  }

  /** The connection, where the answer may be written to it in one piece; `null` where it goes through {@link res}. */
  get direct(): DirectConnection | null {
    return this.#res === null ? this.#direct : null;
  }

  /** What the answer goes out by; Node's own is made when it is first asked for. */
  get res(): Outbound {
    if (this.#res === null) this.#direct?.handOver();
    if (this.#res === null) throw new Error("Node has made no answer");
    return this.#res;
  }

  /** Whether its answer has been decided, or has begun. */
  get isAnswered(): boolean {
    return this.#isDecided || this.#res?.headersSent === true;
  }

  /** Whether some of its answer has been sent or is being sent. */
  get isOut(): boolean {
    return this.#res === null ? this.#direct?.isBusy !== true : this.#res.headersSent;
  }

  /** Marks its answer as decided. */
  decide(): void {
    this.#isDecided = true;
  }

  /** The address that it counts for: the connection's, or what a trusted proxy says. */
  get client(): string {
    return (this.#client ??= clientAddressOf(this.req.socket));
  }

  set client(address: string) {
    this.#client = address;
  }

  /** What it is called across servers; `null` where requests are not named. */
  get requestId(): string | null {
    return this.idStart === null ? null : this.idStart + (ID_ENDS[this.idNumber] ?? "");
  }

  /** Who sent it, where a credential says so: the caller's id, never a secret. */
  get callerId(): string | null {
    return this.caller === null ? null : this.caller.id;
  }

  /** Calls `react` when the right ends with which it is served, at once when it has ended already. */
  onRightEnd(react: () => void): void {
    this.#heldRight = this.rights?.hold(this, react) ?? null;
  }

  /** Its right is no longer looked after. */
  releaseRight(): void {
    this.#heldRight?.release();
    this.#heldRight = null;
  }

  /** Who sent it, for what is counted. */
  get sender(): string {
    return senderOf(this.caller, this.client);
  }

  /** Whether the answer is for its client alone. */
  get isPrivate(): boolean {
    return this.caller === null ? this.headers.authorization !== null : this.caller.id !== null;
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
   * Calls `react` when the client ends its side before it has its answer. In an embedding server the answer ends with
   * that, and {@link onGone} reports it.
   */
  onClientEnd(react: () => void): void {
    this.#onClientEnd = react;
    if (this.#res instanceof OwnResponse || this.#res instanceof StreamAnswer) this.#res.onClientEnd = react;
  }

  /** Whether its answer is the last one of its connection: bytes after an `Upgrade` may belong to another protocol. */
  get isLast(): boolean {
    return this.headers.upgrades;
  }

  takeResponse(res: ServerResponse): void {
    this.#res = res;
    if (this.#onGone !== null) res.on("close", this.#onGone);
    if (res instanceof OwnResponse) res.onClientEnd = this.#onClientEnd;
    // Node would wait for an event that is already past.
    if (this.req.socket.destroyed) res.destroy();
  }

  abandon(): void {
    this.req.destroy();
    this.#onGone?.();
  }

  /** Whether it came to our own server: in an embedding server other code may keep or change what is sent. */
  get isOwn(): boolean {
    return this.#res === null || this.#res instanceof OwnResponse || this.#res instanceof StreamAnswer;
  }

  /** Releases the headers once a long answer has begun: a browser sends 1 KB, and Node keeps three copies. */
  forgetHeaders(): void {
    this.headers = NO_HEADERS;
    this.forgetSentHeaders();
  }

  /** Releases all headers but those that are understood: a client may send many. */
  forgetSentHeaders(): void {
    // An embedding server may still read them.
    if (this.req instanceof DirectRequest || this.req instanceof StreamRequest) this.req.forgetHeaders();
  }
}
