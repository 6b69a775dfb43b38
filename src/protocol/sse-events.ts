// Encodes Server-Sent Events.

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

const EMPTY_JSON_EVENT = "event: data\ndata:[\ndata:]\n\n";

/**
 * A data event (docs/api.md, Follow). `json` takes whole stored messages, each ending with `,\n`, and sends one array
 * with a message on each line; `text` sends a line for each of the payload's, whatever ends it; `base64` sends one
 * line.
 */
export function encodeDataEvent(bytes: Buffer, encoding: "json" | "text" | "base64"): Buffer {
  switch (encoding) {
    case "json":
      return Buffer.from(jsonEvent(bytes), "latin1");
    case "text":
      return Buffer.from(textEvent(bytes), "latin1");
    case "base64":
      return Buffer.from(`event: data\ndata:${bytes.toString("base64")}\n\n`, "latin1");
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
function jsonEvent(stored: Buffer): string {
  if (stored.length === 0) return EMPTY_JSON_EVENT;
  const messages = stored.toString("latin1", 0, stored.length - 2);
  return `event: data\ndata:[\ndata:${messages.replaceAll("\n", "\ndata:")}\ndata:]\n\n`;
}

function textEvent(bytes: Buffer): string {
  let lines = `\n${bytes.toString("latin1")}`;
  if (lines.includes("\r")) lines = lines.replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  lines = lines.replaceAll("\n", "\ndata:");
  // Clients remove one space after the colon. A newline is now always followed by `data:`, so these are line starts.
  if (lines.includes("\ndata: ")) lines = lines.replaceAll("\ndata: ", "\ndata:  ");
  return `event: data${lines}\n\n`;
}
