import type { MaybePromise } from "../stream/stream.js";
import { HeldBody } from "./body-memory.js";
import type { Context } from "./context.js";
import { DirectRequest, type BodySink } from "./direct-request.js";
import type { Exchange } from "./exchange.js";
import { guard } from "./guard.js";
import { problem, type Problem } from "./problems.js";
import type { Cause } from "./shared-room.js";

type UseBody = (body: Buffer) => MaybePromise<void>;

const NO_BYTES = Buffer.alloc(0);

/** Why a body is not read on. */
const NO_ROOM = problem("overloaded", { detail: "Too many bytes of request bodies are on their way." });
const TOO_MUCH = problem("overloaded", { detail: "Too many bytes of request bodies are on their way, and most of them from this address." });
const TOO_SLOW = problem("request-timeout", { detail: "Less than 1 KiB a second came of the body, and others needed its room." });

/**
 * Reads the body of a request and hands it to `use`: whole, and not empty unless the request has none. What is too
 * large is refused here; when the client goes away `use` is never called.
 */
export function receiveBody(context: Context, exchange: Exchange, use: UseBody): MaybePromise<void> {
  const { headers } = exchange;
  if (!headers.hasBody) return use(NO_BYTES);
  const { maxAppendBytes } = context.settings;
  if (headers.contentLength !== null && headers.contentLength > maxAppendBytes) {
    return context.responder.refuse(exchange, tooLarge(maxAppendBytes));
  }
  if (exchange.awaitsContinue) context.responder.sendContinue(exchange);
  new Upload(context, exchange, use).start();
}

function tooLarge(maxBytes: number): Problem {
  return problem("body-too-large", { detail: `At most ${maxBytes} bytes are accepted.` });
}

/** One body on its way in. */
class Upload extends HeldBody implements BodySink {
  readonly #context: Context;
  readonly #exchange: Exchange;
  readonly #use: UseBody;
  /** Nearly every body is one chunk: it is used as it is. */
  #first: Buffer = NO_BYTES;
  #rest: Buffer[] | null = null;
  #length = 0;
  #isOver = false;

  constructor(context: Context, exchange: Exchange, use: UseBody) {
    super(exchange.req.socket, exchange.headers.contentLength ?? 0);
    this.#context = context;
    this.#exchange = exchange;
    this.#use = use;
    exchange.body = this;
  }

  start(): void {
    const { req } = this.#exchange;
    if (req instanceof DirectRequest && req.passTo(this)) return;
    req.on("data", (chunk: Buffer) => this.take(chunk));
    req.on("end", () => this.end());
    // Comes only when the client goes away in the middle.
    req.on("error", () => this.abandon());
  }

  take(chunk: Buffer): void {
    if (this.#isOver) return;
    const { bodyMemory, settings } = this.#context;
    this.#length += chunk.length;
    if (this.#length > settings.maxAppendBytes) return this.#refuse(tooLarge(settings.maxAppendBytes));
    if (!bodyMemory.hold(this, chunk.length)) return this.#refuse(NO_ROOM);
    if (this.#first.length === 0) this.#first = chunk;
    else (this.#rest ??= []).push(chunk);
    // A promised length tells the end by itself.
    if (this.#length === this.#exchange.headers.contentLength) this.end();
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#exchange.bodyPending = false;
    this.finish();
    const body = this.#rest === null ? this.#first : Buffer.concat([this.#first, ...this.#rest], this.#length);
    this.#forget();
    guard(this.#context, this.#exchange, () => this.#use(body));
  }

  override giveWay(cause: Cause): void {
    this.#refuse(cause === "still" ? TOO_SLOW : TOO_MUCH);
  }

  #refuse(refusal: Problem): void {
    this.#isOver = true;
    this.#forget();
    this.release();
    if (this.#exchange.req instanceof DirectRequest) this.#exchange.req.stopPassing();
    this.#context.responder.refuse(this.#exchange, refusal);
  }

  abandon(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#context.inFlight.end(this.#exchange);
  }

  #forget(): void {
    this.#first = NO_BYTES;
    this.#rest = null;
  }
}
