// Counts requests by what they asked for and how they were answered.

import type { Distribution, Sample } from "./exposition.js";
import { DURATION_BOUNDS, Histogram } from "./histogram.js";

/** What a request asks for, as metrics and the access log name it. `other`: it was refused before that was known. */
export const REQUEST_KINDS = [
  "other",
  "append",
  "create",
  "delete",
  "head",
  "read",
  "long-poll",
  "sse",
  "ticket",
  "list",
  "page",
  "health",
  "metrics",
  "preflight",
] as const;

/** One of {@link REQUEST_KINDS}. */
export type RequestKind = (typeof REQUEST_KINDS)[number];

/** The index of each kind: what a request carries. */
export const KIND = Object.fromEntries(REQUEST_KINDS.map((kind, at) => [kind, at])) as Readonly<
  Record<RequestKind, number>
>; // fromEntries forgets the names

/** Three-digit statuses; 0 is a client that left before its answer. */
const STATUSES = 600;
const LEFT = "left";

/** The counters of requests. A request costs a few additions. */
export class RequestFigures {
  /** By kind and status. */
  readonly #answers = REQUEST_KINDS.map(() => new Float64Array(STATUSES));
  readonly #durations = REQUEST_KINDS.map(() => new Histogram(DURATION_BOUNDS));
  readonly #refusals = new Map<string, number>();
  /** Bytes of bodies and of events that were sent. */
  sentBytes = 0;

  /** A request is over; `status` is 0 where its client left before the answer was decided. */
  answered(kind: number, status: number): void {
    const counts = this.#answers[kind];
    if (counts !== undefined) counts[status] = (counts[status] ?? 0) + 1;
  }

  /** A request was answered, or began to wait for more, after `seconds`. */
  took(kind: number, seconds: number): void {
    this.#durations[kind]?.observe(seconds);
  }

  /** A request was refused with the problem `code`. */
  refused(code: string): void {
    this.#refusals.set(code, (this.#refusals.get(code) ?? 0) + 1);
  }

  /** How many were refused with `code`. */
  refusalsWith(code: string): number {
    return this.#refusals.get(code) ?? 0;
  }

  /** Requests by operation and status. */
  *requests(): Generator<Sample> {
    for (const [at, operation] of REQUEST_KINDS.entries())
      for (const [status, value] of this.#answers[at]?.entries() ?? [])
        if (value > 0) yield { labels: { operation, code: status === 0 ? LEFT : String(status) }, value };
  }

  /** The times of those that came. */
  *durations(): Generator<Distribution> {
    for (const [at, operation] of REQUEST_KINDS.entries()) {
      const histogram = this.#durations[at];
      if (histogram !== undefined && histogram.count > 0) yield { labels: { operation }, histogram };
    }
  }

  /** Refusals by code, those of `codes` that did not happen with 0: a rate needs a beginning. */
  *refusals(codes: readonly string[]): Generator<Sample> {
    for (const code of codes) yield { labels: { code }, value: this.refusalsWith(code) };
  }
}
