// Writes a line for each request (docs/metrics.md, The access log).

import { randomBytes } from "node:crypto";
import { KIND, REQUEST_KINDS } from "../../metrics/request-figures.js";
import type { Clock } from "../../ops/clock.js";
import type { LineQueue } from "../../ops/line-queue.js";
import { oneLine } from "../../ops/log.js";
import type { Exchange } from "../exchange/exchange.js";
import { givenId } from "../request/request-id.js";

/** Longer paths and callers are cut. */
const MAX_TEXT_CHARS = 1024;
/** Nearly every name and caller: what needs no escape in JSON. */
const PLAIN = /^[\w./:@ -]*$/;
const OFFSET = "offset=";
/** Only what is an offset: a query may hold anything, a ticket too. */
const ASKED_OFFSET = /^(?:-1|now|\d{16}_\d{16})$/;
/** Numbers below this have their texts at hand: making one anew takes as long as all the rest of a line. */
const KNOWN_NUMBERS = 4096;
/** How long the difference between the two clocks is believed. */
const SYNC_MS = 1000;

/** What a line says of many requests alike. */
interface Matter extends Pick<Exchange, "callerId" | "kind" | "name" | "status" | "code"> {
  readonly text: ReusedText;
}

/** From where to where, and how much. */
interface Extent extends Pick<Exchange, "nextOffset" | "receivedBytes" | "sentBytes"> {
  readonly query: string;
  readonly text: ReusedText;
}

/** Names requests, and writes a line of JSON for each. Never a header's value, a query or a body. */
export class AccessLog {
  readonly #queue: LineQueue;
  readonly #clock: Pick<Clock, "nowMs">;
  /** In front of the ids of this process. */
  readonly #boot = `${randomBytes(6).toString("hex")}-`;
  #count = 0;
  #millisecond = -1;
  #head = "";
  #aheadMs = 0;
  #syncedMs = -Infinity;
  #last: Matter | null = null;
  #lastExtent: Extent | null = null;
  #lastQuery = "";
  #lastAsked = "";

  constructor(queue: LineQueue, clock: Pick<Clock, "nowMs">) {
    this.#queue = queue;
    this.#clock = clock;
  }

  /** Names a request: as its client did, or anew. */
  idFor({ headers }: Exchange): string {
    const given = headers.requestId === null && headers.traceparent === null ? null : givenId(headers);
    return given ?? this.#boot + (this.#count += 1);
  }

  /** A live read has caught up and waits for more, after `tookMs`, at `atMs` of a stopwatch. */
  began(exchange: Exchange, tookMs: number, atMs: number): void {
    this.#queue.push(this.#line("live read begins", exchange, tookMs, atMs));
  }

  /** A request is over, after `tookMs`, at `atMs` of a stopwatch. */
  ended(exchange: Exchange, tookMs: number, atMs: number): void {
    this.#queue.push(this.#line("request", exchange, tookMs, atMs));
  }

  #line(message: string, exchange: Exchange, tookMs: number, atMs: number): string {
    const { requestId } = exchange;
    const matter = this.#matter(exchange);
    const extent = this.#extent(exchange);
    return `${this.#headAt(atMs)}${message}","id":"${requestId ?? ""}${matter}${extent}${tenths(tookMs)}}`;
  }

  /** From where to where, and how much: readers of one stream ask for the same. */
  #extent({ target: { query }, nextOffset, receivedBytes, sentBytes }: Exchange): string {
    const last = this.#lastExtent;
    const isSame =
      last !== null &&
      last.nextOffset === nextOffset &&
      last.receivedBytes === receivedBytes &&
      last.sentBytes === sentBytes &&
      last.query === query;
    if (isSame) return last.text.again();
    const asked = query === "" ? "" : this.#askedOffset(query);
    const reached = nextOffset === null ? "" : `,"nextOffset":"${nextOffset}"`;
    const text = `${asked}${reached},"bytesIn":${textOf(receivedBytes)},"bytesOut":${textOf(sentBytes)},"ms":`;
    this.#lastExtent = { query, nextOffset, receivedBytes, sentBytes, text: new ReusedText(text) };
    return text;
  }

  /** Who asked for what, and how it was answered: most requests are like the one before. */
  #matter(exchange: Exchange): string {
    const { callerId, kind, name, status, code } = exchange;
    const last = this.#last;
    const isSame =
      last !== null &&
      name !== null &&
      last.kind === kind &&
      last.status === status &&
      last.code === code &&
      last.callerId === callerId &&
      last.name === name;
    if (isSame) return last.text.again();
    const text = matterOf(exchange);
    // Of what was not understood, the rest may be anything.
    this.#last = kind === KIND.other ? null : { callerId, kind, name, status, code, text: new ReusedText(text) };
    return text;
  }

  /** The member with the offset that a query names; nothing where that is none. */
  #askedOffset(query: string): string {
    if (query === this.#lastQuery) return this.#lastAsked;
    this.#lastQuery = query;
    return (this.#lastAsked = whole(askedOffset(query)));
  }

  /** The beginning of a line, with the time; the text is reused for a millisecond. */
  #headAt(atMs: number): string {
    if (atMs - this.#syncedMs >= SYNC_MS) {
      this.#aheadMs = this.#clock.nowMs() - atMs;
      this.#syncedMs = atMs;
    }
    const nowMs = Math.floor(atMs + this.#aheadMs);
    if (nowMs !== this.#millisecond) {
      this.#millisecond = nowMs;
      this.#head = whole(`{"time":"${new Date(nowMs).toISOString()}","level":"info","msg":"`);
    }
    return this.#head;
  }
}

/** A text of ASCII that may be used again: only then is it made whole. */
class ReusedText {
  #text: string;
  #isWhole = false;

  constructor(text: string) {
    this.#text = text;
  }

  again(): string {
    if (!this.#isWhole) {
      this.#text = whole(this.#text);
      this.#isWhole = true;
    }
    return this.#text;
  }
}

/**
 * A text of ASCII in one piece. What the engine has put together remains the pieces that it was made of, and each line
 * that it is part of would be gathered from all of them.
 */
function whole(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}

const INTEGERS = Array.from({ length: KNOWN_NUMBERS }, (_, number) => String(number));
const TENTHS = Array.from({ length: KNOWN_NUMBERS }, (_, number) => String(number / 10));

function textOf(integer: number): string {
  return INTEGERS[integer] ?? String(integer);
}

/** To a tenth of a millisecond. */
function tenths(ms: number): string {
  const number = Math.round(ms * 10);
  return TENTHS[number] ?? String(number / 10);
}

function matterOf({ req, name, callerId, kind, status, code, target }: Exchange): string {
  const token = callerId === null ? "" : `,"token":${quoted(callerId)}`;
  const place = name === null ? `path":${quoted(target.path)}` : `stream":${quoted(name)}`;
  const answered = status === 0 ? '"left"' : status;
  const refused = code === null ? "" : `,"code":"${code}"`;
  const operation = REQUEST_KINDS[kind] ?? "other";
  return `"${token},"op":"${operation}","method":${quoted(req.method ?? "")},"${place},"status":${answered}${refused}`;
}

/** The member with the offset that a query names; nothing where that is none. */
function askedOffset(query: string): string {
  let from = query.startsWith(OFFSET) ? 0 : query.indexOf(`&${OFFSET}`);
  if (from < 0) return "";
  from += from === 0 ? OFFSET.length : OFFSET.length + 1;
  const end = query.indexOf("&", from);
  const value = end < 0 ? query.slice(from) : query.slice(from, end);
  return ASKED_OFFSET.test(value) ? `,"offset":"${value}"` : "";
}

function quoted(text: string): string {
  if (text.length <= MAX_TEXT_CHARS && PLAIN.test(text)) return `"${text}"`;
  const json = oneLine(JSON.stringify(text.length > MAX_TEXT_CHARS ? `${text.slice(0, MAX_TEXT_CHARS)}...` : text));
  // Lines are written as latin1, which takes less time.
  return json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
