import { EventEmitter } from "node:events";
import type { Position } from "../../storage/storage.js";

/** What became durable together: the stream went from `from` through each of `ends` (one per append, ascending). */
export interface Advance {
  readonly from: Position;
  readonly ends: readonly Position[];
  readonly to: Position;
  readonly closed: boolean;
}

interface LiveEvents {
  advance: [Advance];
  end: [];
}

/**
 * Wakes the live readers of one stream. `advance` comes once for all that became durable together; `end` when the
 * stream is deleted or has expired. Events carry positions, never data: a slow reader keeps a place, not a backlog.
 */
export class LiveFeed extends EventEmitter<LiveEvents> {
  #from: Position = 0;
  #to: Position = 0;
  #closed = false;
  #ends: Position[] | null = null;

  constructor() {
    super();
    this.setMaxListeners(0);
  }

  /** Notes one durable append (or closure, with `from` equal to `to`). */
  note(from: Position, to: Position, closed: boolean): void {
    if (this.#ends === null) {
      this.#from = from;
      this.#ends = [];
    }
    if (to > from) this.#ends.push(to);
    this.#to = to;
    this.#closed = closed;
  }

  /** Emits what was noted since the last one as one `advance`. */
  emitAdvance(): void {
    const ends = this.#ends;
    if (ends === null) return;
    this.#ends = null;
    this.emit("advance", { from: this.#from, ends, to: this.#to, closed: this.#closed });
  }
}
