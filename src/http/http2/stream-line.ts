import type { ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { Line } from "../node/message.js";
import { CANCEL, NO_ERROR } from "./codes.js";

/** One stream of an HTTP/2 connection, as the line that a request has to itself. */
export class StreamLine implements Line {
  /** The connection, which it shares with other streams. */
  readonly connection: TLSSocket;
  readonly encrypted = true;
  readonly #stream: ServerHttp2Stream;
  /** Bytes of the answer that wait for their turn to be written to the stream. */
  queuedBytes = 0;

  constructor(stream: ServerHttp2Stream, connection: TLSSocket) {
    this.#stream = stream;
    this.connection = connection;
  }

  get remoteAddress(): string | undefined {
    return this.connection.remoteAddress;
  }

  get localAddress(): string | undefined {
    return this.connection.localAddress;
  }

  get localPort(): number | undefined {
    return this.connection.localPort;
  }

  get destroyed(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }

  get writable(): boolean {
    return this.#stream.writable;
  }

  /** The end of a request's body is no sign of a client that leaves: only that of the connection is. */
  get readableEnded(): boolean {
    return this.connection.readableEnded;
  }

  get writableLength(): number {
    return this.#stream.writableLength + this.queuedBytes;
  }

  /** Shrinks as the connection takes the bytes: a stream gives its own on when the client's window allows it. */
  get unsentBytes(): number {
    return this.writableLength;
  }

  end(): void {
    this.#stream.end();
  }

  /** The client may go on sending its body; nobody reads it (RFC 9113, 8.1). */
  destroySoon(): void {
    this.#stream.close(NO_ERROR);
  }

  /**
   * Takes everybody's listeners off a stream that is closed. Node leaves many to the full collections of garbage, and
   * with a listener all of its request would wait for one as well.
   */
  letGo(): void {
    this.#stream.removeAllListeners().on("error", ignore);
  }

  /** Resets the stream; the connection goes on. */
  destroy(): void {
    if (!this.destroyed) this.#stream.close(CANCEL);
    this.#stream.destroy();
  }
}

/** Nothing can go wrong with it any more that anybody would want to know. */
function ignore(): void {}
