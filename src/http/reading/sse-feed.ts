// Sends what is new in a stream to all its SSE readers.

import { sseEncodingOf } from "../../protocol/content-type.js";
import { isGreaterCursor, nextCursor } from "../../protocol/cursor.js";
import { retryDelayMs } from "../../protocol/sse-events.js";
import type { Advance } from "../../stream/loaded/live.js";
import type { Chunk, Position, ReadFrom, Stream } from "../../stream/loaded/stream.js";
import type { Context } from "../context/context.js";
import { isProblem } from "../encoding/problems.js";
import type { Exchange } from "../exchange/exchange.js";
import { eventStreamHead } from "./event-stream-head.js";
import { hasWholeAppends, SseStretch } from "./sse-stretch.js";
import { SseHeartbeat, type SilentReaders } from "./sse-heartbeat.js";
import type { EndRead } from "./staggered-ends.js";
import { SseReader, type ReaderHost, type SseReaderOptions } from "./sse-reader.js";

/**
 * Readers that are sent a stretch before other work has its turn. An append that comes meanwhile is on its way to the
 * disk while the rest is sent, and what becomes durable meanwhile is one stretch.
 */
const READERS_IN_TURN = 100;
/** Most events in one shared stretch; with more of them readers get the bytes in chunks. */
const MAX_SHARED_EVENTS = 1024;

/** A client that wants the events of a stream. */
export interface SseRequest extends Pick<SseReaderOptions, "exchange" | "from"> {
  /** The client's own cursor; `null` when it sent none. */
  readonly cursor: string | null;
}

/** The SSE readers of one stream. It keeps the stream in memory while there is one. */
export class SseFeed implements ReaderHost, SilentReaders {
  readonly #context: Context;
  readonly #stream: Stream;
  readonly #onEmpty: () => void;
  readonly #readers = new Set<SseReader>();
  /** The readers that have caught up. */
  readonly #following = new Set<SseReader>();
  /** Ends of appends that have not been sent to the followers yet. */
  #ends: Position[] = [];
  /** A stretch is being read or sent: what becomes durable waits for its end. */
  #isSharing = false;
  /** Something became durable, or the stream was closed, since that stretch was begun. */
  #isMoreThere = false;
  readonly #leave: () => void;

  constructor(context: Context, stream: Stream, onEmpty: () => void) {
    this.#context = context;
    this.#stream = stream;
    this.#onEmpty = onEmpty;
    this.#leave = stream.follow(
      (advance) => this.#advance(advance),
      () => this.close(),
    );
  }

  /** How many readers there are. */
  get size(): number {
    return this.#readers.size;
  }

  /** Adds a reader of this stream. Start it once the head of its answer is written. */
  add(options: SseReaderOptions): SseReader {
    const reader = new SseReader(this.#context, this, this.#stream, options);
    this.#readers.add(reader);
    return reader;
  }

  /** Ends all readers, each between two events. */
  close(): void {
    for (const reader of this.#readers) reader.finish();
  }

  *ends(): Generator<EndRead> {
    for (const reader of this.#readers) yield (comeBackMs) => reader.dismiss(comeBackMs);
  }

  beat(sinceMs: number, nowMs: number): number {
    let oldestMs = Infinity;
    for (const reader of this.#readers) {
      if (reader.sentAtMs <= sinceMs) reader.beat(nowMs);
      if (reader.sentAtMs < oldestMs) oldestMs = reader.sentAtMs;
    }
    return oldestMs;
  }

  caughtUp(reader: SseReader): void {
    this.#following.add(reader);
  }

  fellBehind(reader: SseReader): void {
    this.#following.delete(reader);
  }

  left(reader: SseReader): void {
    this.#following.delete(reader);
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    this.#leave();
    this.#onEmpty();
  }

  #advance({ ends }: Advance): void {
    if (this.#following.size === 0) return;
    this.#ends = this.#ends.concat(ends);
    this.#isMoreThere = true;
    if (!this.#isSharing) this.#share();
  }

  /** Reads once for all followers. When that fails, each reads by itself, and its own request meets the fault. */
  #share(): void {
    const from = this.#place();
    const pending = this.#ends.filter((end) => end > from);
    const { chunkBytes } = this.#context.settings;
    const ends = pending.slice(0, MAX_SHARED_EVENTS).filter((end, at) => at === 0 || end - from <= chunkBytes);
    const to = ends.at(-1) ?? from;
    const isLongAppend = to - from > chunkBytes && !hasWholeAppends(this.#stream);
    // A closure alone: half a character that was held back is now sent as it is.
    const isRest = ends.length === 0 && from < this.#stream.tail;
    if (isLongAppend || isRest) return this.#scatter();
    // The rest comes as the next stretch: each append is an event of its own, however many became durable together.
    this.#ends = pending.slice(ends.length);
    this.#isMoreThere = this.#ends.length > 0;
    this.#isSharing = true;
    this.#guard(() => {
      const chunk = this.#stream.read(from, to - from);
      if (chunk instanceof Promise) this.#shareLater(chunk, ends);
      else this.#spread(chunk, ends);
    });
  }

  #shareLater(chunk: Promise<Chunk>, ends: readonly Position[]): void {
    chunk.then((read) => this.#spread(read, ends)).catch(() => this.#scatter());
  }

  #spread({ from, to, bytes }: Chunk, ends: readonly Position[]): void {
    const { clock, random } = this.#context;
    const upToDate = to === this.#stream.tail;
    const stretch = new SseStretch(this.#stream, {
      from,
      bytes,
      ends,
      upToDate,
      closed: upToDate && this.#stream.closed,
    });
    const nowMs = clock.nowMs();
    const current = nextCursor(nowMs, null, random);
    // Those that join meanwhile come last; they have the stretch already.
    const readers = this.#following.values();
    const sendOn = (): void => {
      for (let left = READERS_IN_TURN; left > 0; left -= 1) {
        const { done, value: reader } = readers.next();
        if (done === true) return this.#shared();
        reader.follow(stretch, current, nowMs);
      }
      setImmediate(() => this.#guard(sendOn));
    };
    sendOn();
  }

  #shared(): void {
    this.#isSharing = false;
    if (this.#isMoreThere && this.#following.size > 0) this.#share();
  }

  #guard(share: () => void): void {
    try {
      share();
    } catch {
      this.#scatter(); // see #share
    }
  }

  /** The position of the followers. */
  #place(): Position {
    for (const reader of this.#following) return reader.position;
    return this.#stream.tail;
  }

  /** The followers read on by themselves. */
  #scatter(): void {
    this.#isSharing = false;
    this.#ends = [];
    for (const reader of this.#following) reader.readAlone();
  }
}

/** The SSE readers of all streams. */
export class SseFeeds {
  readonly #context: Context;
  readonly #feeds = new Map<Stream, SseFeed>();
  readonly #heartbeat: SseHeartbeat;

  constructor(context: Context) {
    this.#context = context;
    this.#heartbeat = new SseHeartbeat(context.clock, context.settings.sseHeartbeatMs, () => this.#feeds.values());
  }

  /** Answers with the events of a stream from a place on, until it ends or the client leaves. */
  open(stream: Stream, { exchange, from, cursor }: SseRequest): void {
    const { responder, inFlight, clock, random } = this.#context;
    if (exchange.isGone) return inFlight.end(exchange);
    const left = this.#context.liveReaders.enter(exchange.sender, "sse");
    if (isProblem(left)) return responder.refuse(exchange, left);
    exchange.onLeave = left;
    const current = nextCursor(clock.nowMs(), null, random);
    const first = nextCursor(clock.nowMs(), cursor, random);
    if (exchange.idStart !== null)
      exchange.nextOffset = stream.offsetAt(from === "start" ? stream.stored.earliest : from);
    responder.beginEndless(exchange, headersOf(exchange, stream, from, first));
    exchange.forgetHeaders();
    const cursorAhead = isGreaterCursor(first, current) ? first : null;
    // When the server stops, all requests in flight end together.
    const retryMs = retryDelayMs(inFlight.size, random);
    const reader = this.#feedOf(stream).add({ exchange, from, cursorAhead, retryMs });
    this.#heartbeat.start();
    reader.start();
    // Refused, an EventSource would not come back.
    if (inFlight.closing) reader.dismiss(null);
  }

  /** How many readers a stream has. */
  readersOf(stream: Stream): number {
    return this.#feeds.get(stream)?.size ?? 0;
  }

  /** How to end each reader, between two events. */
  *ends(): Generator<EndRead> {
    for (const feed of this.#feeds.values()) yield* feed.ends();
  }

  #feedOf(stream: Stream): SseFeed {
    let feed = this.#feeds.get(stream);
    if (feed === undefined) {
      feed = new SseFeed(this.#context, stream, () => this.#forget(stream));
      this.#feeds.set(stream, feed);
    }
    return feed;
  }

  #forget(stream: Stream): void {
    this.#feeds.delete(stream);
    if (this.#feeds.size === 0) this.#heartbeat.stop();
  }
}

/** The head of an SSE answer: where the read begins, and that nothing on the way may cache or buffer it. */
function headersOf(exchange: Exchange, stream: Stream, from: ReadFrom, cursor: string): string[] {
  const headers = eventStreamHead(exchange);
  headers.push(
    "Stream-Next-Offset",
    stream.offsetAt(from === "start" ? stream.stored.earliest : from),
    "Stream-Cursor",
    cursor,
  );
  if (sseEncodingOf(stream.config.contentType) === "base64") headers.push("Stream-SSE-Data-Encoding", "base64");
  return headers;
}
