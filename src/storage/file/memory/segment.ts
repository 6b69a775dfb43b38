import type { Position, RetentionLimits } from "../../storage.js";
import type { AppendIndex } from "../format/append-index.js";

/** A segment of a stream: `length` bytes are durable, `crc` is that of the bytes already in its file. */
export interface Segment {
  readonly start: Position;
  length: number;
  crc: number;
  /** When its first and its newest byte were appended. */
  readonly firstAtMs: number;
  newestAtMs: number;
  /** Where its appends end; `null` where it is one append of one message. */
  index: AppendIndex | null;
  /** What another process wrote and nobody has compared with its CRC yet; `null` once that is done. */
  unchecked: UncheckedBytes | null;
}

/** The first bytes of a segment, as its sidecar knows them. */
export interface UncheckedBytes {
  readonly length: number;
  readonly crc: number;
  /** The comparison, while it is under way. */
  checking: Promise<void> | null;
}

/** The part of a stream that retention drops first. */
export interface OldestPart {
  /** Where it ends. */
  readonly end: Position;
  /** When its newest byte was appended, at the latest. */
  readonly newestAtMs: number;
}

/** Whether the oldest part of a stream that ends at `tail` is beyond what `limits` keep. */
export function isExcess(oldest: OldestPart | null, tail: Position, limits: RetentionLimits, nowMs: number): boolean {
  if (oldest === null) return false;
  return tail - oldest.end >= limits.maxBytes || nowMs - oldest.newestAtMs > limits.maxAgeMs;
}

/** A piece of a stream that lies in one segment. */
export interface Part extends OldestPart {
  readonly segmentStart: Position;
  /** When the first byte of the segment was appended. */
  readonly firstAtMs: number;
}

/**
 * The first of `parts`, `null` where there is none. A clock that was ahead may have dated it in the future: its bytes
 * are no newer than those of the parts after it.
 */
export function oldestOf(parts: Iterable<Part>, nowMs: number): OldestPart | null {
  let first: Part | null = null;
  let newestAtMs = Infinity;
  for (const part of parts) {
    newestAtMs = Math.min(newestAtMs, first === null ? part.newestAtMs : part.firstAtMs);
    first ??= part;
    if (newestAtMs <= nowMs) break;
  }
  return first === null ? null : { end: first.end, newestAtMs };
}

/** The segments of a stream between two positions, cut to them. */
export function* partsOf(
  segments: readonly Pick<Segment, "start" | "length" | "firstAtMs" | "newestAtMs">[],
  from: Position,
  to: Position,
): Generator<Part> {
  for (const segment of segments) {
    if (segment.start >= to) return;
    const end = Math.min(endOf(segment), to);
    const { start: segmentStart, firstAtMs, newestAtMs } = segment;
    if (end > from) yield { segmentStart, end, firstAtMs, newestAtMs };
  }
}

/** Where a segment ends. */
export function endOf({ start, length }: { readonly start: Position; readonly length: number }): Position {
  return start + length;
}
