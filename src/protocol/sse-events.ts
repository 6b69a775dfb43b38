// Encodes Server-Sent Events.

import type { SseEncoding } from "./content-type.js";

/** The contents of a control event (docs/api.md, Follow). `cursor` is `null` only where the stream is closed. */
export interface ControlFields {
  /** Offset token to read from next. */
  readonly nextOffset: string;
  readonly cursor: string | null;
  /** The reader has all the data there is. */
  readonly upToDate: boolean;
  /** The stream is closed and all its data has been sent. */
  readonly closed: boolean;
}

/** A comment, which shows that the connection is alive. No client takes it for an event. */
export const SSE_COMMENT: Buffer = Buffer.from(":\n\n", "latin1");

const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 1_000;
/** Readers that may reconnect at the same time without a random delay. */
const MAX_SIMULTANEOUS_READERS = 16;

/**
 * How long a client waits before it reconnects, in milliseconds: 100, or up to 1,000 at random where many readers may
 * end together, one for each millisecond. `random` gives numbers in [0, 1).
 */
export function retryDelayMs(readers: number, random: () => number): number {
  const spreadMs = Math.min(MAX_RETRY_MS - MIN_RETRY_MS, readers - MAX_SIMULTANEOUS_READERS);
  return spreadMs <= 0 ? MIN_RETRY_MS : MIN_RETRY_MS + Math.round(random() * spreadMs);
}

/** The line that tells a client this delay: a part of the event that follows it. */
export function encodeRetry(delayMs: number): Buffer {
  return Buffer.from(`retry: ${delayMs}\n`, "latin1");
}

/** The same with no event after it: only the delay counts. */
export function encodeRetryAlone(delayMs: number): Buffer {
  return Buffer.from(`retry: ${delayMs}\n\n`, "latin1");
}

const LINE_FEED = 0x0a;
const SPACE = 0x20;
const EMPTY_JSON_EVENT = "event: data\ndata:[\ndata:]\n\n";
const JSON_EVENT = { opening: "event: data\ndata:[\n", closing: "\ndata:]\n\n" };
const TEXT_EVENT = { opening: "event: data\n", closing: "\n\n" };
const BASE64_OPENING = "event: data\ndata:";
const NOTHING = Buffer.alloc(0);
/** What each line gets at most: `data:`, and a space before one of its own. */
const MAX_LINE_START_BYTES = 6;
/** Lines that are shorter than this on average are copied byte by byte, which is faster than a call for each. */
const SHORT_LINE_BYTES = 64;
/** A string of so many bytes is fast to make and to write; a multiple of 3, so that no padding is in between. */
const BASE64_SLICE_BYTES = 48 * 1024;

/**
 * A data event (docs/api.md, Follow). `json` takes whole stored messages, each ending with `,\n`, and sends one array
 * with a message on each line; `text` sends a line for each of the payload's, whatever ends it; `base64` sends one
 * line. `after` is what follows it, in the same memory: a copy of some MB costs as much as the event.
 */
export function encodeDataEvent(bytes: Buffer, encoding: SseEncoding, after: Buffer = NOTHING): Buffer {
  switch (encoding) {
    case "json":
      return jsonEvent(bytes, after);
    case "text":
      return eventOfLines(withLineFeeds(bytes), TEXT_EVENT, after);
    case "base64":
      return base64Event(bytes, after);
  }
}

/**
 * A control event (docs/api.md, Follow): one flat object on one line directly after the event's name, because existing
 * clients and tests match that text; then the offset as the event's id, for `Last-Event-ID`.
 */
export function encodeControlEvent(fields: ControlFields): Buffer {
  const { nextOffset, cursor, upToDate, closed } = fields;
  // Offsets and cursors are digits and underscores: nothing in them needs an escape.
  let json = `{"streamNextOffset":"${nextOffset}"`;
  if (cursor !== null && !closed) json += `,"streamCursor":"${cursor}"`;
  if (upToDate || closed) json += ',"upToDate":true';
  if (closed) json += ',"streamClosed":true';
  return Buffer.from(`event: control\ndata:${json}}\nid: ${nextOffset}\n\n`, "latin1");
}

/** Stored messages are lines already, and no message begins with a space: only the last comma is removed. */
function jsonEvent(stored: Buffer, after: Buffer): Buffer {
  if (stored.length === 0) return Buffer.concat([Buffer.from(EMPTY_JSON_EVENT, "latin1"), after]);
  return eventOfLines(stored.subarray(0, stored.length - 2), JSON_EVENT, after);
}

function withLineFeeds(text: Buffer): Buffer {
  if (!text.includes("\r")) return text;
  return Buffer.from(text.toString("latin1").replaceAll("\r\n", "\n").replaceAll("\r", "\n"), "latin1");
}

/** An event of these lines. It is made of bytes: strings of some MB take a hundred times as long. */
function eventOfLines(lines: Buffer, { opening, closing }: typeof JSON_EVENT, after: Buffer): Buffer {
  const count = countOfLines(lines);
  const mostBytes = opening.length + lines.length + count * MAX_LINE_START_BYTES + closing.length + after.length;
  const event = Buffer.allocUnsafe(mostBytes);
  let at = event.write(opening, "latin1");
  const copyLine = lines.length < count * SHORT_LINE_BYTES ? copyShortLine : copyLongLine;
  for (let line = 0, from = 0; line < count; line += 1) {
    at = startLine(event, at);
    // Clients remove one space after the colon.
    if (lines[from] === SPACE) event[at++] = SPACE;
    const length = copyLine(lines, from, event, at);
    from += length;
    at += length;
  }
  at += event.write(closing, at, "latin1");
  at += after.copy(event, at);
  return event.subarray(0, at);
}

function countOfLines(lines: Buffer): number {
  let count = 1;
  for (let at = lines.indexOf(LINE_FEED); at !== -1; at = lines.indexOf(LINE_FEED, at + 1)) count += 1;
  return count;
}

/** Writes `data:`, without a call into the runtime for it. Returns where it ends. */
function startLine(event: Buffer, at: number): number {
  event[at] = 0x64;
  event[at + 1] = 0x61;
  event[at + 2] = 0x74;
  event[at + 3] = 0x61;
  event[at + 4] = 0x3a;
  return at + 5;
}

/** Copies the line that begins at `from`, with its end. Returns its length. */
function copyLongLine(lines: Buffer, from: number, event: Buffer, at: number): number {
  const end = lines.indexOf(LINE_FEED, from);
  return lines.copy(event, at, from, end === -1 ? lines.length : end + 1);
}

/** The same for a short one. */
function copyShortLine(lines: Buffer, from: number, event: Buffer, at: number): number {
  let length = 0;
  for (let byte: number | undefined = 0; byte !== LINE_FEED; length += 1) {
    byte = lines[from + length];
    if (byte === undefined) break;
    event[at + length] = byte;
  }
  return length;
}

function base64Event(bytes: Buffer, after: Buffer): Buffer {
  const { closing } = TEXT_EVENT;
  const lineBytes = Math.ceil(bytes.length / 3) * 4;
  const event = Buffer.allocUnsafe(BASE64_OPENING.length + lineBytes + closing.length + after.length);
  let at = event.write(BASE64_OPENING, "latin1");
  for (let from = 0; from < bytes.length; from += BASE64_SLICE_BYTES)
    at += event.write(bytes.toString("base64", from, from + BASE64_SLICE_BYTES), at, "latin1");
  at += event.write(closing, at, "latin1");
  after.copy(event, at);
  return event;
}
