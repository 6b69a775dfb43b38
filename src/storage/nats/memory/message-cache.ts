import type { Position } from "../../storage.js";
import { payloadOf, type PlacedChange } from "../log/change.js";
import type { ClusterStream } from "./cluster-stream.js";

/** What one message costs beside its bytes, about. */
const MESSAGE_BYTES = 512;

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
    const cost = placed.body.length + MESSAGE_BYTES;
    const held = (this.#held.get(stream) ?? 0) + cost;
    this.#held.delete(stream);
    this.#held.set(stream, held);
    stream.recent.push(placed);
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
export function recentFrom(stream: ClusterStream, position: Position): readonly PlacedChange[] {
  const { recent } = stream;
  if ((recent[0]?.change.from ?? Infinity) > position || (recent.at(-1)?.change.to ?? 0) <= position) return [];
  let low = 0;
  let high = recent.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((recent[middle]?.change.to ?? 0) > position) high = middle;
    else low = middle + 1;
  }
  return recent.slice(low);
}

/** The bytes of messages that follow each other, from `from` on, at most `maxBytes`. */
export function bytesFrom(messages: readonly PlacedChange[], from: Position, maxBytes: number): Buffer {
  const pieces: Buffer[] = [];
  let at = from;
  for (const placed of messages) {
    const { change } = placed;
    if (at >= from + maxBytes) break;
    if (change.to <= at) continue;
    const piece = payloadOf(placed).subarray(at - change.from, from + maxBytes - change.from);
    pieces.push(piece);
    at += piece.length;
  }
  const [only] = pieces;
  return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces);
}
