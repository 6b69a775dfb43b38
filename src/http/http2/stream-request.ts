import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Inbound } from "../node/message.js";
import type { StreamLine } from "./stream-line.js";

/** Names and values in turn that a request has no more. */
const NO_HEADERS: readonly string[] = Object.freeze([]);
const NO_HEADER_OBJECT: IncomingHttpHeaders = Object.freeze({});

/** Bytes of a body that nobody reads before its stream is reset. */
const MAX_DROPPED_BYTES = 1024 * 1024;

/** A request that came on a stream of HTTP/2. */
export class StreamRequest implements Inbound {
  readonly httpVersionMajor = 2;
  readonly httpVersionMinor = 0;
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly socket: StreamLine;
  /** Whether a body follows the head. */
  readonly hasBody: boolean;
  readonly #stream: ServerHttp2Stream;
  #onBroken: ((chunk: Buffer) => void) | null = null;
  headers: IncomingHttpHeaders;
  rawHeaders: readonly string[];

  constructor(
    stream: ServerHttp2Stream,
    line: StreamLine,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
  ) {
    this.#stream = stream;
    this.socket = line;
    this.headers = headers;
    this.rawHeaders = rawHeaders;
    this.method = headers[":method"];
    this.url = headers[":path"];
    this.hasBody = !stream.endAfterHeaders;
  }

  /** Whether all of it has come, read or not. */
  get isReceived(): boolean {
    return !this.hasBody || this.#stream.readableEnded || this.#stream.state.remoteClose === 1;
  }

  /**
   * Drops a body that nobody reads. Left where it is, each frame of it would be kept as a buffer of its own, up to the
   * window of the stream.
   */
  dropBody(): void {
    let leftBytes = MAX_DROPPED_BYTES;
    this.#stream.on("data", (chunk: Buffer) => {
      leftBytes -= chunk.length;
      if (leftBytes < 0) this.destroy();
    });
  }

  /** Node ends the body also where the client has reset the stream in the middle of it, without an error's code. */
  on(event: "data" | "end" | "error" | "close", listener: (chunk: Buffer) => void): void {
    if (event === "error") this.#onBroken = listener;
    else if (event === "end")
      this.#stream.on(event, () => (this.#stream.aborted ? this.#onBroken : listener)?.(NO_BYTES));
    else this.#stream.on(event, listener);
  }

  /** Called when its stream is closed. */
  closed(): void {
    if (!this.#stream.readableEnded) this.#onBroken?.(NO_BYTES);
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** Releases its headers. */
  forgetHeaders(): void {
    this.rawHeaders = NO_HEADERS;
    this.headers = NO_HEADER_OBJECT;
  }
}

const NO_BYTES: Buffer = Buffer.alloc(0);
