import {
  DeletedStreamError,
  StorageBusyError,
  TrimmedStreamError,
  type MaybePromise,
  type Position,
} from "../../storage.js";
import { decodeChange, endsOf, payloadOf, type PlacedChange } from "../log/change.js";
import type { LogMessage } from "../log/replicated-log.js";
import type { ClusterStream } from "../memory/cluster-stream.js";
import { bytesFrom, recentEnds, recentFrom } from "../memory/message-cache.js";
import { BYTES, firstBeyond, ownerAt } from "./message-search.js";
import type { ClusterParts, StateReader } from "./state-reader.js";

/** Runs of messages that were read and are likely to be read again; one for each of so many streams. */
const MAX_RUNS = 16;
/** The most that one read puts together; the rest of it is read again. */
const MAX_RUN_BYTES = 4 * 1024 * 1024;
/** What a read that goes on asks for at least: heads count too, and small messages have large ones. */
const MIN_FURTHER_BYTES = 512 * 1024;

/** What messages that follow each other have. */
interface Run {
  readonly from: Position;
  readonly bytes: Buffer;
  /** Where its appends end, ascending. */
  readonly ends: readonly Position[];
}

/** Reads the bytes of streams: from the cache, or from the log. */
export class StreamBytes {
  readonly #parts: ClusterParts;
  readonly #states: StateReader;
  /** What was read last of streams, least recently read first. */
  readonly #runs = new Map<ClusterStream, Run>();

  constructor(parts: ClusterParts, states: StateReader) {
    this.#parts = parts;
    this.#states = states;
  }

  /** At least one byte from `from` on, at most `maxBytes` (see Storage.read). */
  read(stream: ClusterStream, from: Position, maxBytes: number): MaybePromise<Buffer> {
    if (from < stream.earliest) throw new TrimmedStreamError(stream);
    const { owner, end } = ownerAt(stream, from);
    const most = Math.min(maxBytes, end - from);
    const recent = recentFrom(owner, from);
    if (recent.length > 0) return bytesFrom(recent, from, most);
    const kept = this.#kept(owner, from);
    if (kept !== null) return bytesOf(kept, from, most);
    return this.#fetch(stream, owner, from, most).then((messages) =>
      bytesOf(this.#keep(owner, messages, from), from, most),
    );
  }

  /** Where a read of about `maxBytes` should end (see Storage.endOfRead). */
  async endOfRead(stream: ClusterStream, from: Position, maxBytes: number): Promise<Position> {
    let before: Position | null = null;
    for (let at = from; ;) {
      if (at < stream.earliest) throw new TrimmedStreamError(stream);
      const { owner, end } = ownerAt(stream, at);
      for (const appendEnd of await this.#endsFrom(stream, owner, { from, at, end, maxBytes })) {
        at = appendEnd;
        if (appendEnd > from + maxBytes) return before ?? appendEnd;
        before = appendEnd;
      }
    }
  }

  /** Ends of appends after `at`, as far as messages are at hand or come with the next answer. */
  async #endsFrom(
    stream: ClusterStream,
    owner: ClusterStream,
    { from, at, end, maxBytes }: Readonly<Record<"from" | "at" | "end" | "maxBytes", number>>,
  ): Promise<readonly Position[]> {
    const recent = recentFrom(owner, at);
    if (recent.length > 0) return endsAfter(recentEnds(recent), at, end);
    const kept = this.#kept(owner, at);
    if (kept !== null) return endsAfter(kept.ends, at, end);
    const missing = from + maxBytes - at + 1;
    const messages = await this.#fetch(stream, owner, at, at > from ? Math.max(missing, MIN_FURTHER_BYTES) : missing);
    return endsAfter(this.#keep(owner, messages, from).ends, at, end);
  }

  /** Forgets what was read last of a stream. */
  forget(stream: ClusterStream): void {
    this.#runs.delete(stream);
  }

  #kept(owner: ClusterStream, position: Position): Run | null {
    const run = this.#runs.get(owner);
    return run !== undefined && run.from <= position && position < run.from + run.bytes.length ? run : null;
  }

  /**
   * Keeps what a read from `from` on has got so far, for the whole of it to be asked for in a moment: what it got
   * before ends where this begins.
   */
  #keep(owner: ClusterStream, messages: readonly PlacedChange[], from: Position): Run {
    const read = runOf(messages);
    const before = this.#runs.get(owner);
    const goesOn = before !== undefined && before.from <= from && before.from + before.bytes.length === read.from;
    const run = goesOn && from < read.from && read.from - from <= MAX_RUN_BYTES ? joined(before, read, from) : read;
    this.#runs.delete(owner);
    this.#runs.set(owner, run);
    for (const [oldest] of this.#runs) {
      if (this.#runs.size <= MAX_RUNS) break;
      this.#runs.delete(oldest);
    }
    return run;
  }

  /** The message with the byte at `position`, and about `maxBytes` of what follows; at least that message. */
  async #fetch(
    stream: ClusterStream,
    owner: ClusterStream,
    position: Position,
    maxBytes: number,
  ): Promise<readonly PlacedChange[]> {
    const run = await this.#fetchRun(owner, position, maxBytes);
    if (run === null) return this.#explain(stream, owner, position);
    const last = run.at(-1);
    if (last !== undefined) owner.hint(last.change.to, last.sequence + 1);
    return run;
  }

  async #fetchRun(owner: ClusterStream, position: Position, maxBytes: number): Promise<readonly PlacedChange[] | null> {
    const { log, subjects } = this.#parts;
    const subject = subjects.ofStream(owner.name);
    // Where a read ended the next one begins, mostly.
    const guess = owner.sequenceBefore(position);
    const direct = guess === 0 ? [] : chained(await log.range(subject, guess, maxBytes), owner.id);
    if (hasByte(direct[0], position)) return direct;
    const first = await firstBeyond(this.#parts, owner, BYTES, position, owner.state.tail);
    if (first === null || !hasByte(first, position)) return null;
    const run = chained(await log.range(subject, first.sequence, maxBytes), owner.id);
    return run[0]?.sequence === first.sequence ? run : [first];
  }

  /** Why a byte that should be there was not found: it is gone, or the server that was asked is behind. */
  async #explain(stream: ClusterStream, owner: ClusterStream, position: Position): Promise<never> {
    await this.#states.refresh(stream);
    if (stream.standing === "gone") throw new DeletedStreamError(`the stream ${JSON.stringify(stream.name)} is gone`);
    if (position < stream.earliest) throw new TrimmedStreamError(stream);
    if (owner !== stream) await this.#states.refresh(owner);
    throw new StorageBusyError(`a server that was asked for ${JSON.stringify(stream.name)} is behind`);
  }
}

function hasByte(placed: PlacedChange | undefined, position: Position): boolean {
  return placed !== undefined && placed.change.from <= position && position < placed.change.to;
}

/** Messages as far as each follows the one before: a server that is behind, or a purge, may leave a hole. */
function chained(messages: readonly LogMessage[], id: string): readonly PlacedChange[] {
  const run: PlacedChange[] = [];
  for (const message of messages) {
    const placed = decodeChange(message);
    const before = run.at(-1);
    if (placed.change.id !== id || placed.change.deletedAtMs !== null) break;
    if (before !== undefined && placed.previous !== before.sequence) break;
    run.push(placed);
  }
  return run;
}

function runOf(messages: readonly PlacedChange[]): Run {
  const bytes = Buffer.concat(messages.map((placed) => payloadOf(placed)));
  return { from: messages[0]?.change.from ?? 0, bytes, ends: messages.flatMap(({ change }) => endsOf(change)) };
}

/** Two runs behind each other, from `from` on. */
function joined(before: Run, after: Run, from: Position): Run {
  const bytes = Buffer.concat([before.bytes.subarray(from - before.from), after.bytes]);
  return { from, bytes, ends: [...before.ends.filter((end) => end > from), ...after.ends] };
}

/** At least the byte at `position`, at most `maxBytes`. */
function bytesOf({ from, bytes }: Run, position: Position, maxBytes: number): Buffer {
  return bytes.subarray(position - from, position - from + maxBytes);
}

/** Those of ends after `from`; `end` cuts what a fork does not share. */
function endsAfter(ends: readonly Position[], from: Position, end: Position): readonly Position[] {
  const after = ends.filter((at) => at > from && at < end);
  return (ends.at(-1) ?? 0) >= end ? [...after, end] : after;
}
