/** What a control event tells (specification 6). `cursor` is `null` only where the stream is closed. */
export interface ControlFields {
  /** Offset token to read from next. */
  readonly nextOffset: string;
  readonly cursor: string | null;
  /** The reader has all the data there is. */
  readonly upToDate: boolean;
  /** The stream is closed and all its data has been sent. */
  readonly closed: boolean;
}

const EMPTY_JSON_EVENT = "event: data\ndata:[\ndata:]\n\n";

/**
 * A data event (specification 6). `json` takes whole stored messages, each ending with `,\n`, and sends one array with
 * a message on each line; `text` sends a line for each of the payload's, whatever ends it; `base64` sends one line.
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
 * A control event (specification 6): one flat object on one line directly behind the event's name, because existing
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

/**
 * How many of `bytes` may be sent as text now: all but a UTF-8 sequence at the end that lacks up to three of its
 * bytes. Bytes that can't become valid UTF-8 any more are not waited for.
 */
export function completeTextLength(bytes: Buffer): number {
  const { length } = bytes;
  for (let tail = 1; tail <= 3 && tail <= length; tail++) {
    const byte = bytes[length - tail] ?? 0;
    if (isContinuation(byte)) continue;
    const isCut = sequenceLength(byte) > tail && (tail === 1 || canFollow(byte, bytes[length - tail + 1] ?? 0));
    return isCut ? length - tail : length;
  }
  return length;
}

/** Stored messages are lines already, and a message begins with no space: only the last comma has to go. */
function jsonEvent(stored: Buffer): string {
  if (stored.length === 0) return EMPTY_JSON_EVENT;
  const messages = stored.toString("latin1", 0, stored.length - 2);
  return `event: data\ndata:[\ndata:${messages.replaceAll("\n", "\ndata:")}\ndata:]\n\n`;
}

function textEvent(bytes: Buffer): string {
  let lines = `\n${bytes.toString("latin1")}`;
  if (lines.includes("\r")) lines = lines.replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  lines = lines.replaceAll("\n", "\ndata:");
  // Clients take one space after the colon away. A newline is now always followed by `data:`, so these are line starts.
  if (lines.includes("\ndata: ")) lines = lines.replaceAll("\ndata: ", "\ndata:  ");
  return `event: data${lines}\n\n`;
}

function isContinuation(byte: number): boolean {
  return byte >= 0x80 && byte <= 0xbf;
}

/** The bytes in a UTF-8 sequence that begins with `lead`; 0 where none does. */
function sequenceLength(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 0;
  if (lead < 0xe0) return 2;
  return lead < 0xf0 ? 3 : 4;
}

/** Whether `second` is neither overlong, nor a surrogate, nor beyond U+10FFFF behind `lead` (Unicode, table 3-7). */
function canFollow(lead: number, second: number): boolean {
  switch (lead) {
    case 0xe0:
      return second >= 0xa0;
    case 0xed:
      return second <= 0x9f;
    case 0xf0:
      return second >= 0x90;
    case 0xf4:
      return second <= 0x8f;
    default:
      return true;
  }
}
