// A request and its answer as the rooms above see them, whatever version of HTTP carries them.

import type { IncomingHttpHeaders } from "node:http";

/** What a request comes on, and its answer goes out on: a connection of HTTP/1.1, or one stream of HTTP/2. */
export interface Line {
  readonly remoteAddress?: string | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  readonly destroyed: boolean;
  readonly writable: boolean;
  /** Whether the client has ended its side of the connection. */
  readonly readableEnded: boolean;
  readonly writableLength: number;
  /** How many written bytes are not sent yet, where that is known without Node's private names. */
  readonly unsentBytes?: number;
  /** Ends this side of it after what was written. */
  end(): unknown;
  /** Ends it when all that was written is out. */
  destroySoon(): void;
  destroy(): unknown;
}

/** A request; `node:http` makes those of HTTP/1.1. */
export interface Inbound {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[];
  readonly socket: Line;
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  /** `error`: the client has gone in the middle of the body. */
  on(event: "end" | "error" | "close", listener: () => void): unknown;
  pause(): unknown;
  resume(): unknown;
  destroy(): unknown;
}

/** An answer; `node:http` makes those of HTTP/1.1. */
export interface Outbound {
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  readonly writable: boolean;
  /** Whether the connection is kept for more requests: a matter of HTTP/1.1. */
  shouldKeepAlive: boolean;
  writeHead(status: number, headers: string[]): unknown;
  write(chunk: Buffer): boolean;
  end(chunk?: Buffer): unknown;
  writeContinue(): void;
  on(event: "close" | "drain", listener: () => void): unknown;
  once(event: "close", listener: () => void): unknown;
}
