// HTTP/2 by node:http2: its bounds, its connections, and how they end.

import { constants, createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { Clock, Timer } from "../../ops/clock.js";
import type { Log } from "../../ops/log.js";
import { NO_ERROR } from "./codes.js";
import type { ClientResets } from "./reset-budget.js";
import { ServingTurns } from "./serving-turns.js";
import { OpenStream, Session, type SessionLimits, type Shared } from "./session.js";
import { StreamAnswer } from "./stream-answer.js";
import { StreamLine } from "./stream-line.js";
import { StreamRequest } from "./stream-request.js";

/** Streams that one connection may have open at the same time. A page that follows 100 streams has room for more. */
const MAX_STREAMS = 256;
/**
 * What Node resets a stream for: a head of more bytes, or of more headers. Less than that and still too much is refused
 * in words, by the bound that HTTP/1.1 has.
 */
const MAX_HEADER_LIST_BYTES = 48 * 1024;
const MAX_HEADERS = 128;
/** What one connection may take of memory, in megabytes, before its new streams are refused. */
const MAX_SESSION_MEMORY_MB = 10;
/** Entries of one frame of settings, and frames that make no sense, before the connection is ended. */
const MAX_SETTINGS = 32;
const MAX_INVALID_FRAMES = 100;
/** Streams that are refused as too many before the connection is ended. */
const MAX_REJECTED_STREAMS = 100;
/** How often a stop looks for clients that have gone. */
const STOP_LOOK_MS = 1_000;
/** How much of a body may be on its way before the server has taken it. */
const WINDOW_BYTES = 256 * 1024;

/**
 * Else Node hides a header whose value begins or ends with a blank: an append under such an `If-Match` would be stored
 * whatever the tail is. Node has this since 22.17 and its types do not yet; Node 20 hides it all the same.
 */
const SHOWS_BLANKS = { strictFieldWhitespaceValidation: false };

/** The options of HTTP/2. */
export interface SessionsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: SessionLimits & { readonly connectionsCheckingInterval: number };
  /** Counts the streams that are reset by client. */
  readonly resets: ClientResets;
  /** Takes each request. Never throws. */
  readonly serve: (req: StreamRequest, res: StreamAnswer) => void;
}

/** All connections of HTTP/2. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #shared: Shared;
  readonly #server: Http2Server;
  readonly #sessions = new Map<ServerHttp2Session, Session>();
  #isStopping = false;
  #timer: Timer | null = null;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#shared = { resets: options.resets, turns: new ServingTurns() };
    // Without TLS of its own: connections come with theirs done.
    this.#server = createServer({
      ...SHOWS_BLANKS,
      maxSessionMemory: MAX_SESSION_MEMORY_MB,
      maxSettings: MAX_SETTINGS,
      maxHeaderListPairs: MAX_HEADERS,
      maxSessionInvalidFrames: MAX_INVALID_FRAMES,
      maxSessionRejectedStreams: MAX_REJECTED_STREAMS,
      settings: {
        maxConcurrentStreams: MAX_STREAMS,
        maxHeaderListSize: MAX_HEADER_LIST_BYTES,
        initialWindowSize: WINDOW_BYTES,
        enablePush: false,
      },
    });
    this.#server.on("sessionError", (error) =>
      options.log.debug("an HTTP/2 connection broke", { fault: error.message }),
    );
    // The types leave out the last argument, which Node documents.
    this.#server.on("stream", (stream, headers, _flags, rawHeaders: readonly string[] = []) =>
      this.#begin(stream, headers, rawHeaders),
    );
  }

  /** Takes a connection whose client speaks HTTP/2. */
  accept(socket: TLSSocket): void {
    const { clock, limits } = this.#options;
    this.#server.once("session", (session) => {
      this.#sessions.set(session, new Session(session, socket, limits, this.#shared, clock.nowMs()));
      session.on("close", () => this.#forget(session));
    });
    this.#server.emit("connection", socket);
    if (this.#isStopping) this.close();
    if (this.#timer === null) this.#lookLater();
  }

  #forget(session: ServerHttp2Session): void {
    this.#sessions.get(session)?.socket.destroySoon();
    this.#sessions.delete(session);
  }

  #begin(stream: ServerHttp2Stream, headers: StreamRequest["headers"], rawHeaders: readonly string[]): void {
    const { clock, serve } = this.#options;
    // It is a server's.
    const session = this.#sessions.get(stream.session as ServerHttp2Session);
    // It is gone already, perhaps with its connection.
    if (session === undefined) return void stream.on("error", () => undefined).destroy();
    session.began(stream.id ?? 0, clock.nowMs());
    const line = new StreamLine(stream, session.socket);
    const res = new StreamAnswer(stream, line, headers[":method"] === "HEAD");
    if (line.destroyed) return session.remove(null, true, clock.nowMs());
    const req = new StreamRequest(stream, line, headers, rawHeaders);
    const open = new OpenStream(req, res, clock.nowMs());
    // Node waits for what was written before a reset without an error, which is never sent then.
    stream.on("aborted", () => {
      if (stream.rstCode === NO_ERROR) stream.destroy();
    });
    // Nor does it call that an abort where the answer has ended.
    stream.on("end", () => {
      if (stream.closed && !stream.writableFinished) setImmediate(() => destroyUnknown(stream));
    });
    stream.on("close", () => {
      // A client may reset with any code; the server ends without an error only what is answered.
      session.remove(open, stream.rstCode !== NO_ERROR || stream.aborted, clock.nowMs());
      req.closed();
      line.letGo();
    });
    session.add(open, () => serve(req, res));
  }

  #lookLater(): void {
    const { clock, limits } = this.#options;
    this.#timer?.cancel();
    const delayMs = this.#isStopping ? STOP_LOOK_MS : limits.connectionsCheckingInterval;
    this.#timer = this.#sessions.size === 0 ? null : clock.after(delayMs, () => this.#look());
  }

  #look(): void {
    this.#lookLater();
    const nowMs = this.#options.clock.nowMs();
    for (const session of this.#sessions.values()) session.look(nowMs);
  }

  /** Tells all clients to go; each connection ends when its open streams are over. */
  close(): void {
    this.#isStopping = true;
    for (const session of this.#sessions.values()) session.close();
    this.#lookLater();
  }

  /** Cuts all connections. */
  destroy(): void {
    this.#timer?.cancel();
    this.#timer = null;
    for (const session of this.#sessions.values()) session.destroy();
  }
}

/** Ends a stream that nghttp2 has forgotten, which it then calls idle. */
function destroyUnknown(stream: ServerHttp2Stream): void {
  if (stream.state.state === constants.NGHTTP2_STREAM_STATE_IDLE) stream.destroy();
}
