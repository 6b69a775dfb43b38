import type { Stream } from "../loaded/stream.js";

/** Streams looked at when room is needed for one more. */
const MAX_LOOKS = 64;

/** Finds idle streams by the clock algorithm: one that was used since the hand last came by is passed by once. */
export class ClockHand {
  readonly #begin: () => IterableIterator<Stream>;
  readonly #mayLeave: (stream: Stream) => boolean;
  /** Where the search goes on. Kept for one round at most: an iterator that stands still keeps what was in its map. */
  #at: IterableIterator<Stream> | null = null;

  /** `begin` gives the streams to look at, from the first one on; `mayLeave` is asked of those that were not used. */
  constructor(begin: () => IterableIterator<Stream>, mayLeave: (stream: Stream) => boolean) {
    this.#begin = begin;
    this.#mayLeave = mayLeave;
  }

  /** A stream that may leave memory; `null` when none is found within a few looks. */
  findIdle(): Stream | null {
    for (let looks = MAX_LOOKS; looks > 0; looks -= 1) {
      const stream = this.#next();
      if (stream === null) return null;
      if (!stream.recentlyUsed && this.#mayLeave(stream)) return stream;
      stream.recentlyUsed = false;
    }
    return null;
  }

  /** The next search begins at the beginning. */
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
