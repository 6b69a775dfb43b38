// Tells those who follow the list of streams what is made, closed and deleted.

import { TURN_OF_NAMES } from "../../../ops/turns.js";
import { encodeRetry, retryDelayMs } from "../../../protocol/sse-events.js";
import type { StoredStream } from "../../../stream/loaded/stream.js";
import { maySee, seesAll, type Lister } from "../../access/access.js";
import type { Context } from "../../context/context.js";
import { isProblem } from "../../encoding/problems.js";
import type { Exchange } from "../../exchange/exchange.js";
import type { ListQuery } from "../../request/list-query.js";
import { eventStreamHead } from "../event-stream-head.js";
import { isAskedFor, placeOf } from "./list-page.js";
import { OpaquePlaces } from "../opaque-place.js";
import { SseConnection } from "../sse-connection.js";
import { SseHeartbeat, type SilentReaders } from "../sse-heartbeat.js";
import type { EndRead } from "../staggered-ends.js";

/** Events that are remembered for readers who come back. */
const MAX_REMEMBERED = 1024;
/** Events that are kept while some readers have yet to be told. */
const MAX_UNTOLD = 65_536;
/** Bytes of events that wait for one reader who does not take them. */
const MAX_LATE_BYTES = 256 * 1024;
/** Readers who are told in one turn of the event loop. */
const READERS_PER_TURN = 64;

/** One thing that became of a stream. */
interface ListEvent {
  readonly number: number;
  readonly name: string;
  readonly text: string;
}

/** Those who follow the list. What they are told is remembered once for all; each has a place in that. */
export class ListFeed implements SilentReaders {
  readonly #context: Context;
  readonly #heartbeat: SseHeartbeat;
  readonly #readers = new Set<ListReader>();
  /** Of this start: those of another mean nothing. Readers see some of the events, and are not told of how many. */
  readonly #places = new OpaquePlaces();
  #events: ListEvent[] | null = null;
  /** Readers who go on in a later turn. */
  #behind = 0;
  /** Those who are still to be told; `null` when all have been. */
  #telling: Iterator<ListReader> | null = null;
  #isNews = false;
  /** The number of the first event that is remembered. */
  #first = 0;

  constructor(context: Context) {
    this.#context = context;
    this.#heartbeat = new SseHeartbeat(context.clock, context.settings.sseHeartbeatMs, () =>
      this.#readers.size > 0 ? [this] : [],
    );
  }

  /** Answers with what becomes of the streams that the query is for and the lister may see. */
  open(exchange: Exchange, lister: Lister, query: ListQuery): void {
    const { responder, inFlight, random } = this.#context;
    if (exchange.isGone) return inFlight.end(exchange);
    const left = this.#context.liveReaders.enter(exchange.sender, "sse");
    if (isProblem(left)) return responder.refuse(exchange, left);
    exchange.onLeave = left;
    this.#follow();
    // That something was forgotten would tell of events that the lister may not see.
    const resumed = seesAll(lister) ? this.#placeOf(exchange.headers.lastEventId) : null;
    responder.beginEndless(exchange, eventStreamHead(exchange));
    exchange.forgetHeaders();
    const reader = new ListReader(this.#context, this, exchange, {
      maySee: (name) => maySee(lister, name),
      isAsked: isAskedFor(query),
    });
    this.#readers.add(reader);
    this.#heartbeat.start();
    reader.start(encodeRetry(retryDelayMs(inFlight.size, random)), resumed);
    if (inFlight.closing) reader.dismiss(null);
  }

  /** The number of the next event. */
  get end(): number {
    return this.#first + (this.#events?.length ?? 0);
  }

  /** An event by its number; `null` for one that is forgotten. */
  at(number: number): ListEvent | null {
    return this.#events?.[number - this.#first] ?? null;
  }

  /** The id of the place before an event. */
  idOf(number: number): string {
    return this.#places.idOf(number);
  }

  left(reader: ListReader): void {
    this.#readers.delete(reader);
    if (this.#readers.size === 0) this.#heartbeat.stop();
  }

  *ends(): Generator<EndRead> {
    for (const reader of this.#readers) yield (comeBackMs) => reader.dismiss(comeBackMs);
  }

  beat(sinceMs: number, nowMs: number): number {
    let oldestMs = Infinity;
    for (const reader of this.#readers) {
      if (reader.sentAtMs <= sinceMs) reader.beat(nowMs);
      oldestMs = Math.min(oldestMs, reader.sentAtMs);
    }
    return oldestMs;
  }

  /** Nothing is remembered before somebody first follows. */
  #follow(): void {
    if (this.#events !== null) return;
    this.#events = [];
    this.#context.streamList.events
      .on("created", (stream) => this.#tell("created", stream.name, placeOf(stream)))
      .on("closed", (stream: StoredStream) => this.#tell("closed", stream.name, placeOf(stream)))
      .on("deleted", (name) => this.#tell("deleted", name, { name }))
      .on("missed", () => this.#forgetAll());
  }

  #tell(kind: string, name: string, data: object): void {
    this.#events?.push({ number: this.end, name, text: `event: ${kind}\ndata:${JSON.stringify(data)}\n` });
    this.#forgetSome();
    this.#tellAll();
  }

  /** All readers have to list again, and who comes back: an event was missed, whose number nobody finds. */
  #forgetAll(): void {
    this.#first = this.end + 1;
    this.#events = [];
    this.#tellAll();
  }

  #tellAll(): void {
    if (this.#telling !== null) return void (this.#isNews = true);
    this.#telling = this.#readers.values();
    this.#tellSome();
  }

  /** Forgets the oldest events, but none that a reader has yet to be told: a gap would show how many it may not see. */
  #forgetSome(): void {
    const kept = this.#telling === null && this.#behind === 0 ? MAX_REMEMBERED : MAX_UNTOLD;
    const excess = this.end - this.#first - kept;
    if (excess <= 0) return;
    this.#events?.splice(0, excess);
    this.#first += excess;
  }

  /** Goes on telling a reader in a later turn. */
  async pumpLater(pump: () => void): Promise<void> {
    this.#behind += 1;
    await TURN_OF_NAMES.next();
    this.#behind -= 1;
    pump();
  }

  /** Some readers in a turn of the event loop: each has its own pattern, and its own rights, to be looked at. */
  #tellSome(): void {
    for (let told = 0; told < READERS_PER_TURN; told += 1) {
      const next = this.#telling?.next();
      if (next === undefined || next.done === true) return this.#told();
      next.value.pump();
    }
    setImmediate(() => this.#tellSome());
  }

  /** All have been told; once more where there was news meanwhile. */
  #told(): void {
    this.#telling = this.#isNews ? this.#readers.values() : null;
    if (!this.#isNews) return;
    this.#isNews = false;
    setImmediate(() => this.#tellSome());
  }

  /** Where a client goes on that comes back; `null` where something between may be forgotten. */
  #placeOf(lastEventId: string | null): number | null {
    const place = lastEventId === null ? null : this.#places.numberOf(lastEventId);
    const oldest = Math.max(this.#first, this.end - MAX_REMEMBERED);
    return place !== null && place >= oldest && place <= this.end ? place : null;
  }
}

/** Of which streams a reader is told. */
interface Interest {
  readonly maySee: (name: string) => boolean;
  readonly isAsked: (name: string) => boolean;
}

/** One connection that follows the list. */
class ListReader extends SseConnection {
  readonly #feed: ListFeed;
  readonly #maySee: (name: string) => boolean;
  readonly #isAsked: (name: string) => boolean;
  #next = 0;
  /** Whether it goes on in a later turn by itself. */
  #isWaiting = false;
  /** What waits until the client takes it; `null` where that was too much. Only what it may see counts. */
  #late: ListEvent[] | null = [];
  #lateBytes = 0;

  constructor(context: Context, feed: ListFeed, exchange: Exchange, { maySee, isAsked }: Interest) {
    super(context, exchange);
    this.#feed = feed;
    this.#maySee = maySee;
    this.#isAsked = isAsked;
  }

  /** Begins with a control event. `place` is where a client goes on that comes back. */
  start(retry: Buffer, place: number | null): void {
    this.watch();
    this.#next = place ?? this.#feed.end;
    this.#write(`${retry.toString()}${this.#control(place !== null)}`);
    this.pump();
  }

  /** Takes in what there is, in several turns where that takes long, and sends what the client takes. */
  pump(): void {
    while (!this.isOver && !this.#isWaiting && this.#next < this.#feed.end) {
      if (TURN_OF_NAMES.isSpent) return void this.#pumpLater();
      const event = this.#feed.at(this.#next);
      this.#next = event === null ? this.#feed.end : this.#next + 1;
      if (event === null) this.#lose();
      // In this order: what a pattern takes to look at a name would tell that there is one.
      else if (this.#maySee(event.name) && this.#isAsked(event.name)) this.#tell(event);
    }
  }

  #tell(event: ListEvent): void {
    if (!this.isFull) return this.#send(event);
    this.#lateBytes += event.text.length;
    if (this.#lateBytes > MAX_LATE_BYTES) this.#lose();
    else this.#late?.push(event);
  }

  /** The client has to list again: what waits for it is not all that it is to be told. */
  #lose(): void {
    if (!this.isFull) this.#write(this.#control(false));
    else this.#late = null;
  }

  #send({ text, number }: ListEvent): void {
    this.#write(`${text}id: ${this.#feed.idOf(number + 1)}\n\n`);
  }

  #pumpLater(): Promise<void> {
    this.#isWaiting = true;
    return this.#feed.pumpLater(() => {
      this.#isWaiting = false;
      this.pump();
    });
  }

  #control(resumed: boolean): string {
    return `event: control\ndata:${JSON.stringify({ resumed })}\nid: ${this.#feed.idOf(this.#next)}\n\n`;
  }

  #write(text: string): void {
    const events = Buffer.from(text);
    if (!this.isWritable) return this.finish();
    if (this.admits(events)) this.write(events, this.context.clock.nowMs());
  }

  protected override clientEnded(): void {
    this.finish();
  }

  protected override left(): void {
    this.#feed.left(this);
  }

  protected override roomAgain(): void {
    const late = this.#late;
    this.#late = [];
    this.#lateBytes = 0;
    if (late === null) {
      this.#next = this.#feed.end;
      this.#lose();
    }
    // Its rights may be others by now.
    else for (const event of late) if (this.#maySee(event.name)) this.#tell(event);
    this.pump();
  }
}
