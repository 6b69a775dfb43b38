import type { FoundPlace, MaybePromise, Position } from "../storage.js";
import type { FileStream } from "./memory/file-stream.js";
import { endOf, type Segment } from "./memory/segment.js";
import { IndexReader, lastOf } from "./segments/index-reader.js";
import type { StreamFiles } from "./segments/stream-files.js";

/** Counts the messages between two positions within one append; `null` where that is too much work. */
export type CountMessages = (from: Position, to: Position) => MaybePromise<number | null>;

/** A part of a stream in one segment, of its own or of a source: before `to`. */
interface PartBefore {
  readonly owner: FileStream;
  readonly segment: Segment;
  readonly to: Position;
}

/** Finds places in streams by the indexes of their segments: by a number of messages, and by time. */
export class PlaceFinder {
  readonly #indexes: IndexReader;

  constructor(parts: Pick<StreamFiles, "pool" | "log">) {
    this.#indexes = new IndexReader(parts);
  }

  /**
   * Where the last `count` messages begin, or the stream does. A segment whose index is lost counts as one message, so
   * that rather more is found than less. `null` where `countIn` gives up. Throws StorageBusyError.
   */
  async last(stream: FileStream, count: number, countIn: CountMessages): Promise<FoundPlace | null> {
    let left = count;
    for (let end = stream.state.tail; end > stream.earliest;) {
      const part = partBefore(stream, end);
      if (part === null) return { position: end, skip: 0 };
      const { segment, to } = part;
      // What is between two segments was lost, and accepted as that.
      if (end > to) {
        end = to;
        continue;
      }
      const held = await this.#messagesBefore(part, countIn);
      if (held === null) return null;
      if (held >= left) return this.#placeAfter(part, held - left);
      left -= held;
      end = segment.start;
    }
    return { position: stream.earliest, skip: 0 };
  }

  /** How many messages of a segment are before the end of a part of it. */
  async #messagesBefore({ owner, segment, to }: PartBefore, countIn: CountMessages): Promise<number | null> {
    const all = lastOf(segment);
    if (all === null) return 1;
    const length = to - segment.start;
    if (length >= all.end) return all.messages;
    const cut = await this.#indexes.firstAbove(owner, segment, "end", length - 1);
    if (cut === null) return 1;
    if (cut.after.end === length) return cut.after.messages;
    // A fork was made within this append.
    const counted = await countIn(segment.start + cut.before.end, to);
    return counted === null ? null : cut.before.messages + counted;
  }

  /** The place after the first `messages` of a segment. */
  async #placeAfter({ owner, segment }: PartBefore, messages: number): Promise<FoundPlace> {
    const { start } = segment;
    if (messages === 0) return { position: start, skip: 0 };
    const found = await this.#indexes.firstAbove(owner, segment, "messages", messages);
    if (found === null) return { position: start, skip: 0 };
    return { position: start + found.before.end, skip: messages - found.before.messages };
  }

  /** Where the first append begins that was made at `atMs` or later; the tail where none was. */
  async since(stream: FileStream, atMs: number): Promise<Position> {
    const { tail } = stream.state;
    const own = { owner: stream, from: stream.lineage.end, to: tail };
    for (const { owner, to } of [...stream.lineage.ranges, own]) {
      const segment = owner.segments.find(
        (one) => one.newestAtMs >= atMs && one.start < to && endOf(one) > stream.earliest,
      );
      if (segment === undefined) continue;
      const position = segment.start + (await this.#bytesBefore(owner, segment, atMs));
      if (position < to) return Math.max(position, stream.earliest);
    }
    return tail;
  }

  /** The bytes of a segment before its first append that was made at `atMs` or later. */
  async #bytesBefore(owner: FileStream, segment: Segment, atMs: number): Promise<number> {
    const last = lastOf(segment);
    // Times in an index are whole milliseconds.
    const before = Math.ceil(atMs) - 1;
    if (segment.firstAtMs > before || last === null || last.atMs <= before) return 0;
    return (await this.#indexes.firstAbove(owner, segment, "atMs", before))?.before.end ?? 0;
  }
}

/** The part of a stream with the byte before `end`, or what is kept before that byte; `null` where nothing is. */
function partBefore(stream: FileStream, end: Position): PartBefore | null {
  const inherited = end <= stream.lineage.end ? stream.lineage.at(end - 1) : null;
  const owner = inherited?.owner ?? stream;
  const segment = owner.segmentAt(end - 1);
  return segment === undefined ? null : { owner, segment, to: Math.min(end, endOf(segment)) };
}
