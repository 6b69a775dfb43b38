// One SSE connection: its backlog, its pace and its end.

import { isGreaterCursor, nextCursor } from "../../protocol/cursor.js";
import { encodeRetry } from "../../protocol/sse-events.js";
import type { Chunk, Position, ReadFrom, Stream } from "../../stream/loaded/stream.js";
import type { Context } from "../context/context.js";
import type { Exchange } from "../exchange/exchange.js";
import { guard, isExpected } from "../context/guard.js";
import { SseConnection } from "./sse-connection.js";
import { hasWholeAppends, SseStretch } from "./sse-stretch.js";

/** What a reader reports. */
export interface ReaderHost {
  /** It has caught up, and takes shared stretches from now on. */
  caughtUp(reader: SseReader): void;
  /** It no longer takes shared stretches: it has fallen behind, or its connection is full. */
  fellBehind(reader: SseReader): void;
  /** It is over. */
  left(reader: SseReader): void;
}

/** What one reader differs in from others of its stream. */
export interface SseReaderOptions {
  readonly exchange: Exchange;
  readonly from: ReadFrom;
  /** A cursor ahead of the present one, for a client whose own was not older; `null` for all others. */
  readonly cursorAhead: string | null;
  /** How long the client waits before it reconnects. */
  readonly retryMs: number;
}

/**
 * About how many bytes of the backlog are one event, at least one character: what a reader that stands still costs. A
 * longer append is whole, but text longer than a chunk is cut: to encode it takes long, and clients can join it again.
 */
const BACKLOG_EVENT_BYTES = 64 * 1024;
const MIN_EVENT_BYTES = 4;

/**
 * One SSE connection (docs/api.md, Follow). It reads the backlog at the pace of its client. Once it has caught up, it
 * takes the stretches that all such readers share. It keeps a position, not a backlog.
 */
export class SseReader extends SseConnection {
  /** The position up to which the client has been sent the stream. */
  position: Position;
  readonly #host: ReaderHost;
  readonly #stream: Stream;
  readonly #cursorAhead: string | null;
  readonly #retryMs: number;
  #state: "reading" | "blocked" | "following" | "over" = "reading";
  /** Whether the last event said that there is no more for now. */
  #hasToldTail = false;
  /** Where its own next read begins. */
  #next: ReadFrom;

  constructor(context: Context, host: ReaderHost, stream: Stream, options: SseReaderOptions) {
    const { exchange, from, cursorAhead, retryMs } = options;
    super(context, exchange);
    this.#host = host;
    this.#stream = stream;
    this.#next = from;
    this.position = from === "start" ? stream.stored.earliest : from;
    this.#cursorAhead = cursorAhead;
    this.#retryMs = retryMs;
  }

  /** Starts sending. The head of the answer must have been written. */
  start(): void {
    this.watch();
    if (!this.isOver) this.#read();
  }

  /** Sends a stretch that other readers get too; `current` is the present cursor. */
  follow(stretch: SseStretch, current: string, nowMs: number): void {
    if (this.position === stretch.from) this.#send(stretch, current, nowMs);
    // It joined in between, and has some of the stretch already, or all but that the stream was closed since then.
    else if (this.position < stretch.to || stretch.closed) this.readAlone();
  }

  /** Reads on from its position by itself, until it has caught up. */
  readAlone(): void {
    this.#host.fellBehind(this);
    this.#read();
  }

  protected override clientEnded(): void {
    if (this.#state === "following") this.finish();
  }

  protected override roomAgain(): void {
    if (this.#state === "blocked") this.#read();
  }

  protected override left(): void {
    this.#state = "over";
    if (this.exchange.idStart !== null) this.exchange.nextOffset = this.#stream.offsetAt(this.position);
    this.#host.left(this);
  }

  #read(): void {
    this.#state = "reading";
    const read = async (): Promise<void> => {
      try {
        await this.#readBacklog();
      } catch (fault) {
        // Whole events went out: the client reconnects with the id of the last one, and learns the reason then.
        if (!isExpected(fault)) throw fault;
        this.finish();
      }
    };
    guard(this.context, this.exchange, read);
  }

  async #readBacklog(): Promise<void> {
    const chunkBytes = Math.max(MIN_EVENT_BYTES, this.context.settings.chunkBytes);
    const eventBytes = Math.min(BACKLOG_EVENT_BYTES, chunkBytes);
    const longestBytes = hasWholeAppends(this.#stream) ? Infinity : chunkBytes;
    let leastBytes = 0;
    while (this.#state === "reading") {
      const bounds = { longestBytes, leastBytes };
      const chunk = await this.#stream.read(this.#next, eventBytes, { bounds, client: this.exchange });
      if (this.#state !== "reading") return;
      // An append that ends within a character alone is no event: more has to come with it, unless what follows can't
      // be read, and the next read meets the reason.
      this.#sendChunk(chunk, leastBytes > chunk.to - chunk.from);
      leastBytes = this.position === chunk.from ? MIN_EVENT_BYTES : 0;
    }
  }

  #sendChunk({ from, to, bytes }: Chunk, isRest: boolean): void {
    // What no memory is left for need not be encoded.
    if (bytes.length > BACKLOG_EVENT_BYTES && !this.admits(bytes.length)) return;
    // The stream may have moved on since the chunk was read.
    const upToDate = to === this.#stream.tail;
    const closed = upToDate && this.#stream.closed;
    const stretch = { from, bytes, ends: to > from ? [to] : [], upToDate, closed, isRest: isRest && !upToDate };
    const { clock, random } = this.context;
    const nowMs = clock.nowMs();
    this.#send(new SseStretch(this.#stream, stretch), nextCursor(nowMs, null, random), nowMs);
    if (!upToDate || this.#state !== "reading") return;
    if (this.exchange.hasClientEnded) return this.finish();
    this.#state = "following";
    this.#host.caughtUp(this);
  }

  #send(stretch: SseStretch, current: string, nowMs: number): void {
    // The client has ended its side: Node ends this one as soon as all waiting bytes are out.
    if (!this.isWritable) return this.#block();
    const tellsNothing = stretch.isEmpty && this.hasBegun && (this.#hasToldTail || !stretch.upToDate);
    const events = tellsNothing ? null : stretch.encoded(this.#cursorAt(current));
    if (events !== null && !this.admits(events)) return;
    this.position = stretch.to;
    this.#next = stretch.to;
    if (events === null) return;
    const isRoomLeft = this.#write(events, nowMs);
    this.#hasToldTail = stretch.upToDate;
    if (stretch.closed) this.finish();
    else if (!isRoomLeft) this.#block();
  }

  #write(events: Buffer, nowMs: number): boolean {
    if (this.hasBegun) return this.write(events, nowMs);
    const retry = encodeRetry(this.#retryMs);
    if (events.length > BACKLOG_EVENT_BYTES) return this.write(events, nowMs, retry);
    return this.write(Buffer.concat([retry, events]), nowMs);
  }

  #block(): void {
    this.#state = "blocked";
    this.#host.fellBehind(this);
  }

  /** A client that sent a cursor ahead of the present one never gets an older one. */
  #cursorAt(current: string): string {
    return this.#cursorAhead !== null && isGreaterCursor(this.#cursorAhead, current) ? this.#cursorAhead : current;
  }
}
