import type { Position } from "../../storage.js";
import { decodeChange, messagesIn, type Change, type PlacedChange } from "../log/change.js";
import type { ReplicatedLog } from "../log/replicated-log.js";
import type { Subjects } from "../log/subjects.js";
import type { ClusterStream } from "../memory/cluster-stream.js";

/** Something that grows from message to message. */
export interface Measure {
  /** What it is after a message. */
  after(change: Change): number;
  /** What it was before, where the message tells; `Infinity` where it does not. */
  before(change: Change): number;
}

/** The bytes of a stream up to a message. */
export const BYTES: Measure = { after: ({ to }) => to, before: ({ from }) => from };

/** The messages of its records, of JSON or appends of bytes. */
export const MESSAGES: Measure = {
  after: ({ messages }) => messages,
  before: ({ messages, records }) => records.reduce((before, record) => before - messagesIn(record), messages),
};

/** The time of its newest record. */
export const TIMES: Measure = { after: ({ newestAtMs }) => newestAtMs, before: () => Infinity };

/** After so many guesses from what is known of both ends, the rest is cut in two. */
const MAX_GUESSES = 6;

/** Where messages are searched for. */
interface Searched {
  readonly log: ReplicatedLog;
  readonly subjects: Subjects;
}

/** A place where the search has been. */
interface Bound {
  readonly sequence: number;
  readonly value: number;
}

/**
 * The first message of a stream after which `measure` is more than `target`, as any server has it; `null` where none is
 * found, as where that server is behind.
 */
export async function firstBeyond(
  { log, subjects }: Searched,
  stream: ClusterStream,
  measure: Measure,
  target: number,
  tailValue: number,
): Promise<PlacedChange | null> {
  const subject = subjects.ofStream(stream.name);
  const isByBytes = measure === BYTES;
  let low: Bound = { sequence: isByBytes ? Math.max(1, stream.sequenceBefore(target)) : 1, value: 0 };
  let high: Bound = { sequence: isByBytes ? stream.sequenceAfter(target) : stream.sequence, value: tailValue };
  let found: PlacedChange | null = null;
  for (let guesses = 0; low.sequence <= high.sequence; guesses += 1) {
    const guess = guesses === 0 && isByBytes ? low.sequence : guessBetween(low, high, target, guesses);
    const message = await log.find(subject, guess);
    if (message === null || message.sequence > stream.sequence) {
      high = { ...high, sequence: guess - 1 };
      continue;
    }
    const placed = decodeChange(message);
    if (placed.change.id !== stream.id) low = { sequence: placed.sequence + 1, value: 0 };
    else if (measure.after(placed.change) <= target)
      low = { sequence: placed.sequence + 1, value: measure.after(placed.change) };
    else {
      found = placed;
      if (measure.before(placed.change) <= target) break;
      high = { sequence: guess - 1, value: Math.min(high.value, measure.after(placed.change)) };
    }
  }
  return found;
}

function guessBetween(low: Bound, high: Bound, target: number, guesses: number): number {
  const span = high.value - low.value;
  const share = guesses <= MAX_GUESSES && span > 0 ? (target - low.value) / span : 0.5;
  const guess = Math.floor(low.sequence + (high.sequence - low.sequence) * share);
  return Math.min(high.sequence, Math.max(low.sequence, guess));
}

/** A part of a fork's line: a source, or the fork itself, and where its bytes end for the fork. */
interface LinePart {
  readonly owner: ClusterStream;
  readonly end: Position;
}

/** The parts of a fork's line that have something of what it keeps, the oldest first. */
export function lineOf(stream: ClusterStream): readonly LinePart[] {
  const line: LinePart[] = [];
  let end = stream.state.tail;
  // A source of which nothing is kept may be gone.
  for (let owner: ClusterStream | null = stream; owner !== null && end > stream.earliest; owner = owner.parent) {
    if (owner.ownStart < end) line.unshift({ owner, end });
    // A fork of a fork may share less than that one does.
    end = Math.min(end, owner.ownStart);
  }
  return line;
}

/** The part of a fork's line that has the byte at `position`. */
export function ownerAt(stream: ClusterStream, position: Position): LinePart {
  let owner = stream;
  let end = stream.state.tail;
  while (owner.parent !== null && position < owner.ownStart) {
    end = Math.min(end, owner.ownStart);
    owner = owner.parent;
  }
  return { owner, end };
}
