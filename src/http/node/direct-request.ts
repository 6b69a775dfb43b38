// A request whose body does not pass through a stream.
//
// It overrides what Node calls on a request: `push` from the parser, `resume` and `readableEnded` when the answer is
// out, `_read` and `_destroy` from the stream. The names are public, but who calls them when is not promised. A
// stream's queue and events would take a twelfth of a small request's time. A version of Node that does not call them
// here reads the body through the stream, as any other does that was asked for late.

import { IncomingMessage, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { BodyBlocks } from "../../protocol/json/body-blocks.js";

/** Receives a body as it arrives. */
export interface BodySink {
  /** Returns false when the rest should come in a later turn of the event loop. */
  take(chunk: Buffer): boolean;
  /** The body is complete. */
  end(): void;
  /** The client has gone in the middle of the body. */
  abandon(): void;
}

/** Bytes of a body that are read before anybody asks for it. */
const MAX_UNASKED_BYTES = 16 * 1024;

const NO_HEADERS: IncomingHttpHeaders = Object.freeze({});

/** For a request that has no body. */
const IGNORED: BodySink = { take: () => true, end: () => undefined, abandon: () => undefined };

/**
 * A request that passes its body on as Node's parser finds it. A stream's queue and events would take a twelfth of a
 * small request's time, and no body is read more slowly than it arrives.
 */
export class DirectRequest extends IncomingMessage {
  #sink: BodySink | null = null;
  /** Whether some of the body is in the stream. */
  #isStreaming = false;
  /** Whether somebody asked the stream for the body. What came before is gathered: the stream keeps chunks apart. */
  #isAsked = false;
  #unasked: BodyBlocks | null = null;
  /** Whether the sink has had all of the body. */
  #isOver = false;
  /** Whether the connection is not read from until the next turn. */
  #isWaiting = false;
  #takeResponse: ((res: ServerResponse) => void) | null = null;

  /** Gives all of the body to `sink`; false when some of it is in the stream already, which then has the rest too. */
  passTo(sink: BodySink): boolean {
    if (this.#isStreaming) return false;
    this.#sink = sink;
    const unasked = this.#takeUnasked();
    if (unasked === null) return true;
    // The bytes so far may have been enough for Node to stop reading.
    if (sink.take(unasked)) super._read(0);
    else this.#goOnLater();
    return true;
  }

  #takeUnasked(): Buffer | null {
    const unasked = this.#unasked;
    this.#unasked = null;
    return unasked === null ? null : unasked.join();
  }

  /** The head promises no body, so nobody waits for its end. */
  expectNoBody(): void {
    this.passTo(IGNORED);
  }

  /** Node is about to emit the request, which is handled already: `take` gets the answer object that comes with it. */
  expectResponse(take: (res: ServerResponse) => void): void {
    this.#takeResponse = take;
  }

  /** Gives `res` to the handler that the request already has; false when it has none. */
  handOver(res: ServerResponse): boolean {
    this.#takeResponse?.(res);
    return this.#takeResponse !== null;
  }

  /** Releases its headers. */
  forgetHeaders(): void {
    this.rawHeaders = [];
    this.headers = NO_HEADERS;
  }

  /** The rest of the body goes through the stream. */
  stopPassing(): void {
    this.#sink = null;
  }

  /** Called by the parser: `null` is the body's end. Other runtimes than Node give bytes that are no buffer. */
  override push(given: Uint8Array | null): boolean {
    const chunk = given === null || Buffer.isBuffer(given) ? given : bufferOf(given);
    const sink = this.#sink;
    if (sink === null) return this.#pushToStream(chunk);
    if (chunk !== null) return sink.take(chunk) || this.#goOnLater();
    this.#isOver = true;
    sink.end();
    return true;
  }

  #pushToStream(chunk: Buffer | null): boolean {
    if (chunk !== null && !this.#isAsked) {
      this.#unasked ??= new BodyBlocks();
      this.#unasked.add(chunk);
      return this.#unasked.length < MAX_UNASKED_BYTES;
    }
    this.#stream();
    return super.push(chunk);
  }

  /** From now on the body goes through the stream. */
  #stream(): void {
    this.#isStreaming = true;
    const unasked = this.#takeUnasked();
    if (unasked !== null) super.push(unasked);
  }

  /** Called by the stream when somebody wants the body. */
  override _read(size: number): void {
    this.#isAsked = true;
    if (this.#unasked !== null) this.#stream();
    super._read(size);
  }

  /** Returning false makes Node stop reading from the connection until more is asked for. */
  #goOnLater(): false {
    if (!this.#isWaiting)
      setImmediate(() => {
        this.#isWaiting = false;
        super._read(0);
      });
    this.#isWaiting = true;
    return false;
  }

  /** Called by Node when the connection is gone before the body is there. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.#isOver) this.#sink?.abandon();
    super._destroy(error, done);
  }

  static {
    // Node asks once the answer is out, and waits for the event otherwise. A class can't override this in TypeScript.
    const streamed = Object.getOwnPropertyDescriptor(Readable.prototype, "readableEnded");
    Object.defineProperty(this.prototype, "readableEnded", {
      configurable: true,
      get(this: DirectRequest): boolean {
        return this.#isOver || streamed?.get?.call(this) === true;
      },
    });
  }

  /** Node also calls it for a body that seems unread when the answer is out. */
  override resume(): this {
    return this.#sink === null ? super.resume() : this;
  }
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
