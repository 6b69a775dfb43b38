// Encodes a stretch of a stream as events, once for all readers.

import { sseEncodingOf, type SseEncoding } from "../../protocol/content-type.js";
import { encodeControlEvent, encodeDataEvent } from "../../protocol/sse-events.js";
import { completeTextLength } from "../../protocol/utf8.js";
import type { Position, Stream } from "../../stream/loaded/stream.js";

/** A stretch of a stream that is sent as events: `bytes` begin at `from`, and each of `ends` ends an event. */
export interface Stretch {
  readonly from: Position;
  readonly bytes: Buffer;
  /** Ascending; the last one is where `bytes` end. Empty when there are none. */
  readonly ends: readonly Position[];
  /** Whether it ends at the tail. */
  readonly upToDate: boolean;
  /** Whether it ends at the end of a closed stream. */
  readonly closed: boolean;
  /** Whether nothing that can be read follows it for now. */
  readonly isRest?: boolean;
}

/** What one data event tells. */
interface Piece {
  readonly bytes: Buffer;
  readonly nextOffset: string;
}

/** Most encodings of one stretch in memory. Readers differ only in their cursors, and most cursors are the same. */
const MAX_ENCODINGS = 16;
const CARRIAGE_RETURN = 0x0d;

/** Whether an append is one event however long it is: some clients decode each event of binary data by itself. */
export function hasWholeAppends({ config }: Stream): boolean {
  return sseEncodingOf(config.contentType) === "base64";
}

/** A stretch of a stream as events (docs/api.md, Follow), encoded once however many readers get it. */
export class SseStretch {
  readonly from: Position;
  /** A reader's position after it: what is held back comes with the next stretch. */
  readonly to: Position;
  readonly closed: boolean;
  readonly upToDate: boolean;
  readonly #endOffset: string;
  readonly #encoding: SseEncoding;
  readonly #pieces: readonly Piece[];
  /** Their data events, without the control events that follow them, once the first reader has got them. */
  readonly #data: Buffer[] = [];
  readonly #encodings = new Map<string, Buffer>();

  constructor(stream: Stream, stretch: Stretch) {
    this.#encoding = sseEncodingOf(stream.config.contentType);
    const { pieces, to } = piecesOf(stream, stretch, this.#encoding);
    this.from = stretch.from;
    this.to = to;
    this.closed = stretch.closed;
    this.upToDate = stretch.upToDate;
    this.#endOffset = stream.offsetAt(to);
    this.#pieces = pieces;
  }

  /** Whether it has nothing for a reader. */
  get isEmpty(): boolean {
    return this.#pieces.length === 0 && !this.closed;
  }

  /** All its events, for readers with this cursor. An empty stretch still says where the reader stands. */
  encoded(cursor: string): Buffer {
    const known = this.#encodings.get(cursor);
    if (known !== undefined) return known;
    const encoding = this.#encode(cursor);
    if (this.#encodings.size < MAX_ENCODINGS) this.#encodings.set(cursor, encoding);
    return encoding;
  }

  #encode(cursor: string): Buffer {
    const last = this.#pieces.length - 1;
    if (last < 0) return this.#finalControl(cursor);
    const events = this.#pieces.map(({ bytes, nextOffset }, at) => {
      const isLast = at === last;
      const control = isLast
        ? this.#finalControl(cursor)
        : encodeControlEvent({ nextOffset, cursor, upToDate: false, closed: false });
      return this.#event(bytes, at, control);
    });
    const [only] = events;
    return only !== undefined && last === 0 ? only : Buffer.concat(events);
  }

  #event(bytes: Buffer, at: number, control: Buffer): Buffer {
    const known = this.#data[at];
    if (known !== undefined) return Buffer.concat([known, control]);
    const event = encodeDataEvent(bytes, this.#encoding, control);
    this.#data[at] = event.subarray(0, event.length - control.length);
    return event;
  }

  #finalControl(cursor: string): Buffer {
    const { closed } = this;
    return encodeControlEvent({
      nextOffset: this.#endOffset,
      cursor: closed ? null : cursor,
      upToDate: this.upToDate,
      closed,
    });
  }
}

function piecesOf(
  stream: Stream,
  { from, bytes, ends, upToDate, closed, isRest = false }: Stretch,
  encoding: SseEncoding,
): { pieces: Piece[]; to: Position } {
  const pieces: Piece[] = [];
  let start = from;
  for (const [at, end] of ends.entries()) {
    const piece = bytes.subarray(start - from, end - from);
    const holdsBack = encoding === "text" && !((closed || isRest) && at === ends.length - 1);
    const length = holdsBack ? sendableLength(piece, upToDate) : piece.length;
    if (length === 0) continue;
    start += length;
    pieces.push({ bytes: piece.subarray(0, length), nextOffset: stream.offsetAt(start) });
  }
  return { pieces, to: start };
}

/** An incomplete character waits for its rest; so does a CR whose LF may follow in the next chunk. */
function sendableLength(text: Buffer, upToDate: boolean): number {
  const isCutLineEnd = !upToDate && text.length > 1 && text[text.length - 1] === CARRIAGE_RETURN;
  return isCutLineEnd ? text.length - 1 : completeTextLength(text);
}
