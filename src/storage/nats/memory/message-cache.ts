import type { Position } from "../../storage.js";
import { endsOf, payloadOf, type PlacedChange } from "../log/change.js";
import type { ClusterStream, RecentMessage } from "./cluster-stream.js";

/** What one message costs beside its bytes, about. */
const MESSAGE_BYTES = 320;
const END_BYTES = 8;

/** The newest messages of the streams in memory, up to a number of bytes: reads near the tail ask nobody. */
export class MessageCache {
  readonly #maxBytes: number;
  /** Streams with messages here, least recently appended to first, and how much they hold. */
  readonly #held = new Map<ClusterStream, number>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Memory held, about. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Keeps a message that the stream has just adopted. One that does not follow those before takes their place. */
  add(stream: ClusterStream, placed: PlacedChange): void {
    if (stream.recent.at(-1)?.sequence !== placed.previous) this.drop(stream);
    const { from, to, records } = placed.change;
    const ends = records.length === 1 ? null : endsOf(placed.change);
    // The rest of a change would outlive it for nothing: the garbage collector copies what lives on.
    const message = { sequence: placed.sequence, from, to, payload: payloadOf(placed), ends };
    const cost = placed.body.length + MESSAGE_BYTES + END_BYTES * (ends?.length ?? 0);
    const held = (this.#held.get(stream) ?? 0) + cost;
    this.#held.delete(stream);
    this.#held.set(stream, held);
    stream.recent.push(message);
    this.#bytes += cost;
    for (const [oldest] of this.#held) {
      if (this.#bytes <= this.#maxBytes) break;
      this.drop(oldest);
    }
  }

  /** Forgets what is kept of a stream. */
  drop(stream: ClusterStream): void {
    this.#bytes -= this.#held.get(stream) ?? 0;
    this.#held.delete(stream);
    stream.recent = [];
  }
}

/** The message with the byte at `position`, and those behind it, where the cache has them; otherwise none. */
export function recentFrom(stream: ClusterStream, position: Position): readonly RecentMessage[] {
  const { recent } = stream;
  if ((recent[0]?.from ?? Infinity) > position || (recent.at(-1)?.to ?? 0) <= position) return [];
  let low = 0;
  let high = recent.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((recent[middle]?.to ?? 0) > position) high = middle;
    else low = middle + 1;
  }
  return recent.slice(low);
}

/** The bytes of messages that follow each other, from `from` on, at most `maxBytes`. */
export function bytesFrom(messages: readonly RecentMessage[], from: Position, maxBytes: number): Buffer {
  const pieces: Buffer[] = [];
  let at = from;
  for (const message of messages) {
    if (at >= from + maxBytes) break;
    if (message.to <= at) continue;
    const piece = message.payload.subarray(at - message.from, from + maxBytes - message.from);
    pieces.push(piece);
    at += piece.length;
  }
  const [only] = pieces;
  return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces);
}

/** Where the appends of messages that follow each other end, ascending. */
export function recentEnds(messages: readonly RecentMessage[]): readonly Position[] {
  return messages.flatMap(({ ends, from, to }) => ends ?? (to > from ? [to] : []));
}
