// Reads request bodies, and refuses requests that their heads disqualify.

import { IncomingMessage } from "node:http";
import { isJsonContentType } from "../../protocol/content-type.js";
import { BodyBlocks } from "../../protocol/json/body-blocks.js";
import { JsonFramer } from "../../protocol/json/json-frame.js";
import { chain } from "../../stream/loaded/chain.js";
import type { Body } from "../../stream/rules/command.js";
import type { Refused } from "../../stream/rules/outcome.js";
import type { MaybePromise } from "../../stream/loaded/stream.js";
import { HeldBody } from "../bounds/body-memory.js";
import type { Context } from "./context.js";
import { DirectRequest, type BodySink } from "../node/direct-request.js";
import type { Exchange } from "../exchange/exchange.js";
import { fail, guard } from "./guard.js";
import { problem, type Problem } from "../encoding/problems.js";
import type { Cause } from "../bounds/shared-room.js";

/** A request with a body, from its head on until its body has been used. */
export abstract class BodyUse<Head extends { readonly contentType: string | null } = { contentType: string | null }> {
  readonly context: Context;
  readonly exchange: Exchange;
  /** The stream's. */
  readonly name: string;
  readonly head: Head;

  constructor(context: Context, exchange: Exchange, name: string, head: Head) {
    this.context = context;
    this.exchange = exchange;
    this.name = name;
    this.head = head;
  }

  /** Whether the body is declared as JSON: one that arrives in parts is checked and framed as it arrives. */
  get isJson(): boolean {
    return isJsonContentType(this.head.contentType ?? "");
  }

  /** The longest body that is taken, in bytes. */
  get maxBytes(): number {
    return this.context.settings.maxAppendBytes;
  }

  /** Why a longer one is not. */
  get tooLong(): Problem {
    return problem("body-too-large", { detail: `At most ${this.maxBytes} bytes are accepted.` });
  }

  /**
   * Why the request is refused whatever its body is; `null` when it depends on the body. Without `hasData` the body may
   * yet turn out to be empty. May throw what `use` would throw.
   */
  abstract refusal(hasData: boolean): MaybePromise<Refused | null>;

  /** Why the request is refused when its body has come later than its head: its sender's right may have ended. */
  lateRefusal(): Problem | null {
    return this.context.access.refusalOfLate(this.exchange, this.name);
  }

  /** Takes the body, whole. */
  abstract use(body: Body): MaybePromise<void>;
}

const NO_BYTES: Buffer = Buffer.alloc(0);

/** How much of one JSON body is checked in a turn of the event loop, in bytes, before others get their turn. */
const MAX_BYTES_IN_TURN = 256 * 1024;

/** Why the rest of a body is not read. */
const NO_ROOM = problem("overloaded", { detail: "Too many bytes of request bodies are on their way." });
const TOO_MUCH = problem("overloaded", {
  detail: "Too many bytes of request bodies are on their way, and most of them from this address.",
});
const TOO_SLOW = problem("request-timeout", {
  detail: "Less than 1 KiB a second came of the body, and others needed its room.",
});

/**
 * Reads the body of a request and passes it to `user`: whole, and not empty unless the request has none. A request
 * whose head or size is reason enough is refused here, before its body is read. When the client goes away, `user` never
 * gets the body.
 */
export function receiveBody(user: BodyUse): MaybePromise<void> {
  const { context, exchange } = user;
  const { headers } = exchange;
  if (!headers.hasBody) return user.use(NO_BYTES);
  if (headers.contentLength !== null && headers.contentLength > user.maxBytes)
    return context.responder.refuse(exchange, user.tooLong);
  if (headers.contentLength !== null) exchange.account?.charge(headers.contentLength);
  const upload = new Upload(user);
  return exchange.awaitsContinue ? upload.startIfWelcome() : upload.start();
}

/** One body that is arriving. */
class Upload extends HeldBody implements BodySink {
  readonly #context: Context;
  readonly #exchange: Exchange;
  readonly #user: BodyUse;
  /** Nearly every body is one chunk: it is used as it is. */
  #first: Buffer = NO_BYTES;
  #gathered: BodyBlocks | JsonFramer | null = null;
  #length = 0;
  #bytesInTurn = 0;
  /** Whether its head will be judged when the turn is over, or has been judged as far as possible. */
  #isJudged = false;
  /** Whether it did not come whole in the turn of its head. */
  #isLate = false;
  #isOver = false;

  constructor(user: BodyUse) {
    const { context, exchange } = user;
    super(exchange, exchange.headers.contentLength ?? 0);
    this.#context = context;
    this.#exchange = exchange;
    this.#user = user;
    exchange.body = this;
  }

  start(): void {
    const { req, isOwn, isGone } = this.#exchange;
    // Its client left while its credential was verified: nobody would ever say that the body has ended.
    if (isGone) return this.abandon();
    if (!isOwn && req instanceof IncomingMessage) mustBeUntouched(req);
    this.#judgeSoon();
    if (req instanceof DirectRequest && req.passTo(this)) return;
    req.on("data", (chunk: Buffer) => {
      if (this.take(chunk)) return;
      req.pause();
      setImmediate(() => req.resume());
    });
    req.on("end", () => this.end());
    // Comes only when the client goes away in the middle.
    req.on("error", () => this.abandon());
    // An embedding server may have held it while it asked who that is.
    if (req instanceof IncomingMessage && req.isPaused()) req.resume();
  }

  /** For a client that waits for `100 Continue`. */
  startIfWelcome(): MaybePromise<void> {
    const { inFlight, responder } = this.#context;
    return chain(this.#user.refusal(this.#hasData), (refusal) => {
      if (this.#exchange.isGone) return inFlight.end(this.#exchange);
      // Its sender's right may have ended meanwhile, and the body may be here already: its client need not have waited.
      const refused = this.#user.lateRefusal() ?? refusal;
      if (refused !== null) return responder.refuse(this.#exchange, refused);
      responder.sendContinue(this.#exchange);
      this.start();
    });
  }

  /** Whether it is certain that there are bytes: chunks may all be empty. */
  get #hasData(): boolean {
    return this.#length > 0 || this.#exchange.headers.contentLength !== null;
  }

  /**
   * Nearly every body arrives with its head and is complete when the turn ends: only the others need their head judged
   * first.
   */
  #judgeSoon(): void {
    this.#isJudged = true;
    if (begun.push(this) === 1) setImmediate(judgeBegun);
  }

  /** Refuses the request if its head alone is reason enough. Never rejects. */
  async judge(): Promise<void> {
    if (this.#isOver) return;
    this.#isLate = true;
    this.#exchange.forgetSentHeaders();
    const hasData = this.#hasData;
    this.#isJudged = hasData;
    try {
      // What the stream is like is not for one whose right has ended since its head came.
      const refusal = this.#user.lateRefusal() ?? (await this.#user.refusal(hasData));
      if (refusal !== null) this.#refuse(refusal);
    } catch (fault) {
      if (this.#stop()) fail(this.#context, this.#exchange, fault);
    }
  }

  take(chunk: Buffer): boolean {
    if (this.#isOver) return true;
    const { bodyMemory } = this.#context;
    this.#length += chunk.length;
    this.#exchange.receivedBytes = this.#length;
    if (this.#exchange.headers.contentLength === null) this.#exchange.account?.charge(chunk.length);
    if (this.#length > this.#user.maxBytes) return this.#refuse(this.#user.tooLong);
    if (!bodyMemory.hold(this, chunk.length)) return this.#refuse(NO_ROOM);
    if (this.#length === chunk.length) this.#first = chunk;
    else this.#gather(chunk);
    // A promised length marks the end by itself.
    if (this.#length === this.#exchange.headers.contentLength) this.end();
    else if (!this.#isJudged) this.#judgeSoon();
    return this.#isOver || !this.#user.isJson || this.#isInTurn(chunk.length);
  }

  #gather(chunk: Buffer): void {
    if (this.#gathered === null) {
      this.#gathered = this.#user.isJson ? new JsonFramer() : new BodyBlocks(this.#exchange.headers.contentLength);
      this.#gathered.add(this.#first);
      this.#first = NO_BYTES;
    }
    this.#gathered.add(chunk);
  }

  /** Whether more may be checked before others have their turn. */
  #isInTurn(length: number): boolean {
    this.#bytesInTurn += length;
    if (this.#bytesInTurn < MAX_BYTES_IN_TURN) return true;
    this.#bytesInTurn = 0;
    return false;
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#exchange.bodyPending = false;
    this.finish();
    guard(this.#context, this.#exchange, () => this.#use());
  }

  #use(): MaybePromise<void> {
    const [first, gathered] = [this.#first, this.#gathered];
    this.#forget();
    const refusal = this.#isLate ? this.#user.lateRefusal() : null;
    if (refusal !== null) return this.#context.responder.refuse(this.#exchange, refusal);
    if (gathered === null) return this.#user.use(first);
    const body = gathered instanceof JsonFramer ? gathered.end() : gathered.joinInTurns();
    return chain<Body, void>(body, (whole) => this.#user.use(whole));
  }

  override giveWay(cause: Cause): void {
    this.#refuse(cause === "still" ? TOO_SLOW : TOO_MUCH);
  }

  /** Always true, as nothing more is checked. */
  #refuse(refusal: Problem): true {
    if (this.#stop()) this.#context.responder.refuse(this.#exchange, refusal);
    return true;
  }

  /** Stops reading the body, for an answer before its end; false when it has ended. */
  #stop(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#forget();
    this.release();
    if (this.#exchange.req instanceof DirectRequest) this.#exchange.req.stopPassing();
    return true;
  }

  abandon(): void {
    if (this.#stop()) this.#context.inFlight.end(this.#exchange);
  }

  #forget(): void {
    this.#first = NO_BYTES;
    this.#gathered = null;
  }
}

/** Throws where an embedding server, or a part of it, has done something after which what comes is not the body. */
function mustBeUntouched(req: IncomingMessage): void {
  // It parses bodies, and has some of this one or all.
  if (req.readableDidRead) throw new Error("the body of a request was read before streamdir got it");
  if (req.readableEncoding !== null)
    throw new Error("the body of a request comes as text: setEncoding was called before streamdir got it");
}

/** Bodies that began in this turn of the event loop, of all servers of the process. */
let begun: Upload[] = [];

function judgeBegun(): void {
  const uploads = begun;
  begun = [];
  for (const upload of uploads) void upload.judge();
}
