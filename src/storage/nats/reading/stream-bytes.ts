import {
  DeletedStreamError,
  StorageBusyError,
  TrimmedStreamError,
  type MaybePromise,
  type Position,
} from "../../storage.js";
import { decodeChange, type PlacedChange } from "../log/change.js";
import type { LogMessage } from "../log/replicated-log.js";
import type { ClusterStream } from "../memory/cluster-stream.js";
import { bytesFrom, recentFrom } from "../memory/message-cache.js";
import { BYTES, firstBeyond, ownerAt } from "./message-search.js";
import type { ClusterParts, StateReader } from "./state-reader.js";

/** Runs of messages that were read and are likely to be read again; one for each of so many streams. */
const MAX_RUNS = 16;

/** Reads the bytes of streams: from the cache, or from the log. */
export class StreamBytes {
  readonly #parts: ClusterParts;
  readonly #states: StateReader;
  /** What was read last of streams, least recently read first. */
  readonly #runs = new Map<ClusterStream, readonly PlacedChange[]>();

  constructor(parts: ClusterParts, states: StateReader) {
    this.#parts = parts;
    this.#states = states;
  }

  /** At least one byte from `from` on, at most `maxBytes` (see Storage.read). */
  read(stream: ClusterStream, from: Position, maxBytes: number): MaybePromise<Buffer> {
    if (from < stream.earliest) throw new TrimmedStreamError(stream);
    const { owner, end } = ownerAt(stream, from);
    const most = Math.min(maxBytes, end - from);
    const kept = this.#kept(owner, from);
    if (kept.length > 0) return bytesFrom(kept, from, most);
    return this.#fetch(stream, owner, from, most).then((run) => bytesFrom(run, from, most));
  }

  /** Where a read of about `maxBytes` should end (see Storage.endOfRead). */
  async endOfRead(stream: ClusterStream, from: Position, maxBytes: number): Promise<Position> {
    let before: Position | null = null;
    for (let at = from; ;) {
      if (at < stream.earliest) throw new TrimmedStreamError(stream);
      const { owner, end } = ownerAt(stream, at);
      const kept = this.#kept(owner, at);
      const run = kept.length > 0 ? kept : await this.#fetch(stream, owner, at, from + maxBytes - at + 1);
      for (const appendEnd of endsOf(run, at, end)) {
        at = appendEnd;
        if (appendEnd > from + maxBytes) return before ?? appendEnd;
        before = appendEnd;
      }
    }
  }

  #kept(owner: ClusterStream, position: Position): readonly PlacedChange[] {
    const recent = recentFrom(owner, position);
    if (recent.length > 0) return recent;
    const run = this.#runs.get(owner) ?? [];
    const index = run.findIndex(({ change }) => change.from <= position && position < change.to);
    return index < 0 ? [] : run.slice(index);
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
    if (last !== undefined) owner.hint({ position: last.change.to, sequence: last.sequence + 1 });
    this.#runs.delete(owner);
    this.#runs.set(owner, run);
    for (const [oldest] of this.#runs) {
      if (this.#runs.size <= MAX_RUNS) break;
      this.#runs.delete(oldest);
    }
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

/** Ends of appends after `from` in messages that follow each other; `end` cuts what a fork does not share. */
function* endsOf(run: readonly PlacedChange[], from: Position, end: Position): Generator<Position> {
  for (const { change } of run) {
    let at = change.from;
    for (const { length } of change.records) {
      at += length;
      if (at > from && length > 0) yield Math.min(at, end);
      if (at >= end) return;
    }
  }
}
