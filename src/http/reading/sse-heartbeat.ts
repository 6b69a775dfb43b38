// Keeps quiet SSE connections alive.

import type { Clock, Timer } from "../../ops/clock.js";

/** A group of SSE readers that share a heartbeat. */
export interface SilentReaders {
  /**
   * Sends a comment to each reader that was sent nothing since `sinceMs`. Returns when the reader that is silent for
   * the longest now was sent something; `Infinity` when there is none.
   */
  beat(sinceMs: number, nowMs: number): number;
}

/** The part of the interval by which a comment may go out early, together with others. */
const EARLY_PART = 1 / 16;

/**
 * Sends a comment to SSE readers that were sent nothing for an interval: without it proxies take a quiet connection for
 * a dead one. One timer serves all readers, and looks at them at most 16 times an interval.
 */
export class SseHeartbeat {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #groups: () => Iterable<SilentReaders>;
  #timer: Timer | null = null;

  /** `groups` returns all present readers. */
  constructor(clock: Clock, intervalMs: number, groups: () => Iterable<SilentReaders>) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    this.#groups = groups;
  }

  /** A reader has come: makes sure that all are checked before it has been silent for an interval. */
  start(): void {
    this.#timer ??= this.#clock.after(this.#intervalMs, () => this.#beat());
  }

  /** There are no readers any more. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #beat(): void {
    this.#timer = null;
    const nowMs = this.#clock.nowMs();
    const sinceMs = nowMs - this.#intervalMs * (1 - EARLY_PART);
    let oldestMs = Infinity;
    for (const group of this.#groups()) oldestMs = Math.min(oldestMs, group.beat(sinceMs, nowMs));
    if (oldestMs === Infinity) return;
    this.#timer = this.#clock.after(oldestMs + this.#intervalMs - nowMs, () => this.#beat());
  }
}
