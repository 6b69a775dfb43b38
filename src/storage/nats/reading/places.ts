import type { FoundPlace, MaybePromise, Position } from "../../storage.js";
import { messagesIn, type PlacedChange } from "../log/change.js";
import type { ClusterStream } from "../memory/cluster-stream.js";
import { BYTES, firstBeyond, lineOf, MESSAGES, TIMES } from "./message-search.js";
import type { ClusterParts } from "./state-reader.js";

/** Counts the messages between two positions within one append; `null` to give up. */
type CountMessages = (from: Position, to: Position) => MaybePromise<number | null>;

/** Finds places by messages and times, from what each message says of the stream up to it. */
export class Places {
  readonly #parts: ClusterParts;

  constructor(parts: ClusterParts) {
    this.#parts = parts;
  }

  /** Where the last `count` messages begin (see Storage.placeOfLast). */
  async last(stream: ClusterStream, count: number, countIn: CountMessages): Promise<FoundPlace | null> {
    const start = { position: stream.earliest, skip: 0 };
    let wanted = count;
    let owner = stream;
    let end = stream.state.tail;
    let all: number | null = stream.messages;
    // A source of which nothing is kept may be gone.
    while (wanted > all && owner.parent !== null && stream.earliest < owner.ownStart) {
      wanted -= all;
      // A fork of a fork may share less than that one does.
      end = Math.min(end, owner.ownStart);
      all = await this.#messagesBefore(owner.parent, end, countIn);
      if (all === null) return null;
      owner = owner.parent;
    }
    if (wanted > all) return start;
    if (wanted === 0) return { position: stream.state.tail, skip: 0 };
    const found = await this.#placeAfter(owner, all - wanted);
    if (found === null || found.position < stream.earliest) return start;
    // Nobody who reads from there would ever arrive at the tail.
    if (found.position > stream.state.tail) throw beyondTail(stream, found.position);
    return found;
  }

  /** The messages of a stream before `position`, up to which a fork shares them. */
  async #messagesBefore(owner: ClusterStream, position: Position, countIn: CountMessages): Promise<number | null> {
    if (position <= owner.ownStart) return 0;
    const placed = await firstBeyond(this.#parts, owner, BYTES, position - 1, owner.state.tail);
    if (placed === null) return null;
    let messages = MESSAGES.before(placed.change);
    let at = placed.change.from;
    for (const record of placed.change.records) {
      if (at >= position) break;
      const end = at + record.length;
      const inside = end <= position ? messagesIn(record) : await countIn(at, position);
      if (inside === null) return null;
      messages += inside;
      at = end;
    }
    return messages;
  }

  /** The place after the first `messages` of a stream. */
  async #placeAfter(owner: ClusterStream, messages: number): Promise<FoundPlace | null> {
    const placed = await firstBeyond(this.#parts, owner, MESSAGES, messages, owner.messages);
    if (placed === null) return null;
    let before = MESSAGES.before(placed.change);
    let position = placed.change.from;
    for (const record of placed.change.records) {
      const inside = messagesIn(record);
      if (before + inside > messages) return { position, skip: Math.max(0, messages - before) };
      before += inside;
      position += record.length;
    }
    return { position, skip: 0 };
  }

  /** Where the first append begins that was made at `atMs` or later; the tail where none was. */
  async since(stream: ClusterStream, atMs: number): Promise<Position> {
    for (const { owner, end } of lineOf(stream)) {
      const { touchedAtMs } = owner.state;
      const placed = await firstBeyond(this.#parts, owner, TIMES, Math.ceil(atMs) - 1, touchedAtMs);
      const position = placed === null ? end : firstSince(placed, atMs);
      if (position < end) return Math.max(position, stream.earliest);
    }
    return stream.state.tail;
  }
}

/** Where the first record of a message begins that is not older; times of several servers may step back. */
function firstSince({ change }: PlacedChange, atMs: number): Position {
  let at = change.from;
  for (const record of change.records) {
    if (record.atMs >= atMs && record.length > 0) return at;
    at += record.length;
  }
  return at;
}

function beyondTail({ name, state }: ClusterStream, position: Position): RangeError {
  return new RangeError(`${position} is beyond the tail of the stream ${JSON.stringify(name)}, ${state.tail}`);
}
