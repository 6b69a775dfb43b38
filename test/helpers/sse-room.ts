import { EventEmitter } from "node:events";
import type { UnreadAnswers } from "../../src/http/bounds/unread.js";
import type { Context } from "../../src/http/context/context.js";
import type { Exchange } from "../../src/http/exchange/exchange.js";
import { SseFeed } from "../../src/http/reading/sse-feed.js";
import { defaultSettings } from "../../src/options.js";
import { LiveFeed, type Advance } from "../../src/stream/loaded/live.js";
import type { Chunk, Stream } from "../../src/stream/loaded/stream.js";
import { httpParts } from "./http-parts.js";
import { ManualClock } from "./manual-clock.js";

/** Room for one of the longest appends here, not for two. */
export const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** A connection that keeps what is written to it. */
export class FakeResponse extends EventEmitter {
  readonly headersSent = true;
  readonly writable = true;
  readonly written: Buffer[] = [];
  isFull = false;
  isEnded = false;

  write(bytes: Buffer): boolean {
    this.written.push(bytes);
    return !this.isFull;
  }

  end(): void {
    this.isEnded = true;
  }
}

/** A stream of letters in memory, whose tokens are its positions. */
export class FakeStream {
  readonly config: { readonly contentType: string };
  readonly feed = new LiveFeed();
  readonly reads: string[] = [];
  bytes = Buffer.alloc(0);
  closed = false;
  users = 0;
  /** Reads wait for `letGo` when set. */
  isSlow = false;
  /** What reads meet, at once or later. */
  fault: { readonly isAtOnce: boolean } | null = null;
  #waiting: (() => void)[] = [];
  /** Where appends ended. */
  readonly #ends: number[] = [];

  constructor(contentType: string) {
    this.config = { contentType };
  }

  get tail(): number {
    return this.bytes.length;
  }

  offsetAt(position: number): string {
    return `@${position}`;
  }

  follow(onAdvance: (advance: Advance) => void, onEnd: () => void): () => void {
    this.retain();
    this.feed.on("advance", onAdvance).on("end", onEnd);
    return () => {
      this.feed.off("advance", onAdvance).off("end", onEnd);
      this.release();
    };
  }

  retain(): void {
    this.users += 1;
  }

  release(): void {
    this.users -= 1;
  }

  read(from: number, maxBytes: number): Chunk | Promise<Chunk> {
    this.reads.push(`${from}+${maxBytes}`);
    const chunk = this.#chunk(from, maxBytes);
    if (this.fault?.isAtOnce === true) throw new Error("the disk is gone");
    if (this.fault !== null) return Promise.reject(new Error("the disk is gone"));
    if (!this.isSlow) return chunk;
    return new Promise((resolve) => this.#waiting.push(() => resolve(chunk)));
  }

  letGo(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Appends pieces that become durable together. */
  append(...pieces: string[]): void {
    for (const piece of pieces) {
      const from = this.tail;
      this.bytes = Buffer.concat([this.bytes, Buffer.from(piece)]);
      this.#ends.push(this.tail);
      this.feed.note(from, this.tail, this.closed);
    }
    this.feed.emitAdvance();
  }

  close(): void {
    this.closed = true;
    this.feed.note(this.tail, this.tail, true);
    this.feed.emitAdvance();
  }

  #chunk(from: number, maxBytes: number): Chunk {
    const end = this.#ends.findLast((at) => at > from && at <= from + maxBytes) ?? this.#ends.find((at) => at > from);
    const bytes = this.bytes.subarray(from, end);
    const to = from + bytes.length;
    return { kind: "chunk", from, to, bytes, upToDate: to === this.tail, closed: false };
  }
}

/** A feed of a stream, and its readers. */
export class Room {
  readonly stream: FakeStream;
  readonly clock = new ManualClock();
  readonly faults: string[] = [];
  readonly unread: UnreadAnswers;
  /** Of the readers, as they came; `code` is what they were refused with. */
  readonly exchanges: { readonly code: string | null }[] = [];
  emptied = 0;
  readonly feed: SseFeed;

  constructor(contentType = "text/plain") {
    this.stream = new FakeStream(contentType);
    const log = { debug() {}, info() {}, warn() {}, error: (message: string) => void this.faults.push(message) };
    const { inFlight, unread } = httpParts({ clock: this.clock, maxLargeBytes: MAX_UNREAD_BYTES });
    const context = { clock: this.clock, log, random: () => 0.5, settings: defaultSettings(), inFlight, unread };
    this.unread = unread;
    // Registry and responder are not asked for here; the stream has all that a feed asks of one.
    this.feed = new SseFeed(context as unknown as Context, this.stream as unknown as Stream, () => (this.emptied += 1));
  }

  /** Starts a reader and lets it read what is there. */
  async join({
    position = this.stream.tail,
    cursorAhead = null as string | null,
    response = new FakeResponse(),
  } = {}): Promise<FakeResponse> {
    const socket = { writableLength: 0, destroy: () => void response.emit("destroyed", exchange.code) };
    const exchange = {
      req: { socket, method: "GET" },
      res: response,
      isAnswered: true,
      target: { path: "/" },
      slot: -1,
      code: null,
      hasClientEnded: false,
      onClientEnd: () => undefined,
      onRightEnd: () => undefined,
    };
    this.exchanges.push(exchange);
    // All that a reader asks of an exchange.
    this.feed.add({ exchange: exchange as unknown as Exchange, from: position, cursorAhead, retryMs: 100 }).start();
    await settle();
    return response;
  }
}

/** Lets everything run that waits for promises only. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The data of the events that a reader was sent. */
export function dataOf(response: FakeResponse): string {
  return [
    ...Buffer.concat(response.written)
      .toString()
      .matchAll(/^event: data\ndata:(.*)$/gm),
  ]
    .map(([, data]) => data)
    .join("|");
}
