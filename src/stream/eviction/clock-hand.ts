import type { Stream } from "../loaded/stream.js";

/** How many streams one search looks at. */
export const MAX_LOOKS = 64;

/** Finds idle streams by the clock algorithm: it passes a stream once if it was used since the last look. */
export class ClockHand {
  readonly #begin: () => IterableIterator<Stream>;
  readonly #mayLeave: (stream: Stream) => boolean;
  /** Where the search continues. Kept for one round at most: an unfinished iterator keeps what was in its map. */
  #at: IterableIterator<Stream> | null = null;

  /** `begin` iterates over the streams, from the first one on; `mayLeave` is called for those that were not used. */
  constructor(begin: () => IterableIterator<Stream>, mayLeave: (stream: Stream) => boolean) {
    this.#begin = begin;
    this.#mayLeave = mayLeave;
  }

  /** A stream that may be evicted; `null` when a short search finds none. */
  findIdle(): Stream | null {
    for (let looks = MAX_LOOKS; looks > 0; looks -= 1) {
      const stream = this.#next();
      if (stream === null) return null;
      if (!stream.recentlyUsed && this.#mayLeave(stream)) return stream;
      stream.recentlyUsed = false;
    }
    return null;
  }

  /** Makes the next search start at the first stream. */
  rest(): void {
    this.#at = null;
  }

  #next(): Stream | null {
    const next = this.#at?.next();
    if (next !== undefined && next.done !== true) return next.value;
    this.#at = this.#begin();
    const first = this.#at.next();
    return first.done === true ? null : first.value;
  }
}
