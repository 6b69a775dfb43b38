// Writes a line for each request (docs/metrics.md, The access log).

import { KIND, REQUEST_KINDS } from "../../metrics/request-figures.js";
import type { Clock } from "../../ops/clock.js";
import type { LineBytes } from "../../ops/lines/line-bytes.js";
import type { LineQueue } from "../../ops/lines/line-queue.js";
import { oneLine } from "../../ops/log.js";
import type { Exchange } from "../exchange/exchange.js";
import { givenId, RequestIds } from "../request/request-id.js";

/** Longer paths and callers are cut. */
const MAX_TEXT_CHARS = 1024;
/** Nearly every name and caller: what needs no escape in JSON. */
const PLAIN = /^[\w./:@ -]*$/;
const OFFSET = "offset=";
/** Only what is an offset: a query may hold anything, a ticket too. */
const ASKED_OFFSET = /^(?:-1|now|\d{16}_\d{16})$/;
/** How long the difference between the two clocks is believed. */
const SYNC_MS = 1000;
const MANY: ReadonlySet<number> = new Set([KIND.append, KIND.read, KIND["long-poll"]]);
/** In place of a status: none is written. */
const NO_STATUS = -1;

const OVER = "request";
const BEGINS = "live read begins";
const PATH = bytesOf(`path":`);
const STREAM = bytesOf(`stream":`);
const STATUS = bytesOf(`,"status":`);
const NEXT_OFFSET = bytesOf(`,"nextOffset":"`);
const BYTES_IN = bytesOf(`,"bytesIn":`);
const BYTES_OUT = bytesOf(`,"bytesOut":`);
const MS = bytesOf(`,"ms":`);
const ASKED = bytesOf(`,"offset":"`);
const QUOTE = 34;
const CLOSING_BRACE = 125;

/** Bytes of the block of lines: what is the same in the next line is taken from there. */
interface Span {
  from: number;
  to: number;
}

/** The line before, and where its parts are. */
class LastLine {
  lines: LineBytes | null = null;
  callerId: string | null = null;
  kind = -1;
  method: string | undefined = undefined;
  name: string | null = null;
  status = 0;
  code: string | null = null;
  query = "";
  nextOffset: string | null = null;
  receivedBytes = 0;
  sentBytes = 0;
  /** All parts, one behind the other, from the id to the time that it took. */
  readonly caller: Span = { from: 0, to: 0 };
  readonly place: Span = { from: 0, to: 0 };
  readonly asked: Span = { from: 0, to: 0 };
  readonly extent: Span = { from: 0, to: 0 };
  nextOffsetAt = 0;

  /** Whether it has the same caller, who asked for the same, and was answered as well. */
  isOf({ callerId, kind, req, name, code }: Exchange, status: number): boolean {
    return (
      this.kind === kind &&
      this.status === status &&
      this.code === code &&
      this.callerId === callerId &&
      this.method === req.method &&
      name !== null &&
      this.name === name
    );
  }

  /** Its parts are as long again, so much later. */
  shift(by: number): void {
    const { caller, place, asked, extent } = this;
    caller.from += by;
    caller.to += by;
    place.from += by;
    place.to += by;
    asked.from += by;
    asked.to += by;
    extent.from += by;
    extent.to += by;
    this.nextOffsetAt += by;
  }

  /** Whether what it was asked, and how much came and went, is the same. */
  hasExtentOf({ target, receivedBytes, sentBytes }: Exchange): boolean {
    return this.receivedBytes === receivedBytes && this.sentBytes === sentBytes && this.query === target.query;
  }
}

/** Names requests, and writes a line of JSON for each. Never a header's value, a query or a body. */
export class AccessLog {
  readonly #queue: LineQueue;
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #ids = new RequestIds();
  #millisecond = -1;
  #time = "";
  #aheadMs = 0;
  #syncedMs = -Infinity;
  /** The beginning of most lines, up to the last digits of the id: of a request that is over, with an id made here. */
  #beginning: Buffer = Buffer.of();
  #beginningTime = "";
  #beginningId = "";
  readonly #last = new LastLine();

  constructor(queue: LineQueue, clock: Pick<Clock, "nowMs">) {
    this.#queue = queue;
    this.#clock = clock;
  }

  /** Names a request: as its client did, or anew. */
  name(exchange: Exchange): void {
    const { headers } = exchange;
    const given = headers.requestId === null && headers.traceparent === null ? null : givenId(headers);
    exchange.idStart = given;
    if (given !== null) return;
    this.#ids.next();
    exchange.idStart = this.#ids.start;
    exchange.idNumber = this.#ids.number;
  }

  /** A live read has caught up and waits for more, after `tookMs`, at `atMs` of a stopwatch. */
  began(exchange: Exchange, tookMs: number, atMs: number): void {
    this.#write(BEGINS, exchange, tookMs, atMs);
  }

  /** A request is over, after `tookMs`, at `atMs` of a stopwatch. */
  ended(exchange: Exchange, tookMs: number, atMs: number): void {
    this.#write(OVER, exchange, tookMs, atMs);
  }

  #write(message: string, exchange: Exchange, tookMs: number, atMs: number): void {
    const line = this.#queue.begin();
    if (line === null) return;
    const last = this.#last;
    const isFollowed = last.lines === line && line.length > 0;
    last.lines = line;
    this.#writeHead(line, message, exchange, atMs);
    // A long-poll that begins to wait has no status yet.
    const status = message === BEGINS && exchange.status === 0 ? NO_STATUS : exchange.status;
    if (!isFollowed || !repeatLast(line, exchange, last, status)) {
      writeCaller(line, exchange, last, isFollowed);
      writePlace(line, exchange, last, isFollowed, status);
      writeExtent(line, exchange, last, isFollowed);
    }
    line.addTenths(Math.round(tookMs * 10));
    if (tellsClient(exchange.kind, status)) writeClient(line, exchange.client);
    line.addByte(CLOSING_BRACE);
    this.#queue.end();
  }

  /** The time, what happened, and the id. */
  #writeHead(line: LineBytes, message: string, exchange: Exchange, atMs: number): void {
    const time = this.#timeAt(atMs);
    const { idStart, idNumber } = exchange;
    if (idStart === null || idNumber < 0 || message !== OVER)
      return line.addText(`${beginningOf(time, message)}${exchange.requestId ?? ""}`);
    if (this.#beginningTime !== time || this.#beginningId !== idStart) {
      this.#beginningTime = time;
      this.#beginningId = idStart;
      this.#beginning = bytesOf(beginningOf(time, message) + idStart);
    }
    line.add(this.#beginning);
    line.addThreeDigits(idNumber);
  }

  /** The time as text, which is the same one for a millisecond. */
  #timeAt(atMs: number): string {
    if (atMs - this.#syncedMs >= SYNC_MS) {
      this.#aheadMs = this.#clock.nowMs() - atMs;
      this.#syncedMs = atMs;
    }
    const nowMs = Math.floor(atMs + this.#aheadMs);
    if (nowMs !== this.#millisecond) {
      this.#millisecond = nowMs;
      this.#time = new Date(nowMs).toISOString();
    }
    return this.#time;
  }
}

function beginningOf(time: string, message: string): string {
  return `{"time":"${time}","level":"info","msg":"${message}","id":"`;
}

/**
 * Writes what the line before has, where that differs in the offset alone that the answer ends at, if at all: many
 * requests to one stream are like that. False where there is more that differs, and nothing is written.
 */
function repeatLast(line: LineBytes, exchange: Exchange, last: LastLine, status: number): boolean {
  const { nextOffset } = exchange;
  const isSame = last.nextOffset === nextOffset;
  if (!isSame && (nextOffset === null || last.nextOffset?.length !== nextOffset.length)) return false;
  if (!last.hasExtentOf(exchange) || !last.isOf(exchange, status)) return false;
  const { caller, extent } = last;
  const by = line.length - caller.from;
  line.repeat(caller.from, extent.to);
  last.shift(by);
  if (!isSame && nextOffset !== null) {
    line.overwrite(last.nextOffsetAt, nextOffset);
    last.nextOffset = nextOffset;
  }
  return true;
}

/** All but what is most of a server's work, and went well. */
function tellsClient(kind: number, status: number): boolean {
  return status === 0 || status >= 400 || !MANY.has(kind);
}

/** Where a request came from; nothing for a Unix socket. */
function writeClient(line: LineBytes, client: string): void {
  if (client !== "") line.addText(`,"client":${quoted(client)}`);
}

/** Who asked for what: most requests are like the one before. */
function writeCaller(line: LineBytes, exchange: Exchange, last: LastLine, isFollowed: boolean): void {
  const { callerId, kind, req } = exchange;
  const { method } = req;
  const { caller } = last;
  const from = line.length;
  if (isFollowed && last.kind === kind && last.method === method && last.callerId === callerId)
    line.repeat(caller.from, caller.to);
  else {
    const token = callerId === null ? "" : `,"token":${quoted(callerId)}`;
    line.addText(`"${token},"op":"${REQUEST_KINDS[kind] ?? "other"}","method":${quoted(method ?? "")},"`);
    last.callerId = callerId;
    last.kind = kind;
    last.method = method;
  }
  caller.from = from;
  caller.to = line.length;
}

/** Which stream, and how it was answered. */
function writePlace(line: LineBytes, exchange: Exchange, last: LastLine, isFollowed: boolean, status: number): void {
  const { name, code } = exchange;
  const { place } = last;
  const from = line.length;
  if (isFollowed && name !== null && last.name === name && last.status === status && last.code === code)
    line.repeat(place.from, place.to);
  else {
    line.add(name === null ? PATH : STREAM);
    writeQuoted(line, name ?? exchange.target.path);
    if (status !== NO_STATUS) line.add(STATUS);
    if (status === 0) line.addText('"left"');
    else if (status !== NO_STATUS) line.addInteger(status);
    if (code !== null) line.addText(`,"code":"${code}"`);
    last.name = name;
    last.status = status;
    last.code = code;
  }
  place.from = from;
  place.to = line.length;
}

/** From where to where, and how much: readers of one stream ask for the same. */
function writeExtent(line: LineBytes, exchange: Exchange, last: LastLine, isFollowed: boolean): void {
  const { query } = exchange.target;
  const { nextOffset, receivedBytes, sentBytes } = exchange;
  const { extent, asked } = last;
  const from = line.length;
  const isAsked = isFollowed && last.query === query;
  if (
    isAsked &&
    last.nextOffset === nextOffset &&
    last.receivedBytes === receivedBytes &&
    last.sentBytes === sentBytes
  ) {
    const by = from - extent.from;
    asked.from += by;
    asked.to += by;
    last.nextOffsetAt += by;
    line.repeat(extent.from, extent.to);
  } else {
    if (isAsked) line.repeat(asked.from, asked.to);
    else if (query !== "") writeAskedOffset(line, query);
    asked.to = line.length;
    if (nextOffset !== null) {
      line.add(NEXT_OFFSET);
      last.nextOffsetAt = line.length;
      line.addText(nextOffset);
      line.addByte(QUOTE);
    }
    line.add(BYTES_IN);
    line.addInteger(receivedBytes);
    line.add(BYTES_OUT);
    line.addInteger(sentBytes);
    line.add(MS);
    asked.from = from;
    last.query = query;
    last.nextOffset = nextOffset;
    last.receivedBytes = receivedBytes;
    last.sentBytes = sentBytes;
  }
  extent.from = from;
  extent.to = line.length;
}

/** The member with the offset that a query names; nothing where that is none. */
function writeAskedOffset(line: LineBytes, query: string): void {
  let from = query.startsWith(OFFSET) ? 0 : query.indexOf(`&${OFFSET}`);
  if (from < 0) return;
  from += from === 0 ? OFFSET.length : OFFSET.length + 1;
  const end = query.indexOf("&", from);
  const value = end < 0 ? query.slice(from) : query.slice(from, end);
  if (!ASKED_OFFSET.test(value)) return;
  line.add(ASKED);
  line.addText(value);
  line.addByte(QUOTE);
}

/** Adds a text in JSON, of ASCII alone. */
function writeQuoted(line: LineBytes, text: string): void {
  if (text.length > MAX_TEXT_CHARS || !PLAIN.test(text)) return line.addText(quoted(text));
  line.addByte(QUOTE);
  line.addText(text);
  line.addByte(QUOTE);
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

/** A text in JSON, of ASCII alone. */
function quoted(text: string): string {
  if (text.length <= MAX_TEXT_CHARS && PLAIN.test(text)) return `"${text}"`;
  const json = oneLine(JSON.stringify(text.length > MAX_TEXT_CHARS ? `${text.slice(0, MAX_TEXT_CHARS)}...` : text));
  return json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
