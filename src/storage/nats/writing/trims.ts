import type { Position, RetentionLimits } from "../../storage.js";
import type { Change } from "../log/change.js";
import type { ClusterStream } from "../memory/cluster-stream.js";
import { BYTES, firstBeyond, lineOf, ownerAt, TIMES } from "../reading/message-search.js";
import type { ClusterParts, StateReader } from "../reading/state-reader.js";
import type { ForkEdges } from "./fork-edges.js";
import type { Beginning, Publisher } from "./publisher.js";
import type { Reserve } from "./reserve.js";

/** A stream is trimmed once an eighth more is kept than a limit says: a trim costs a message. */
const SLACK = 1 / 8;

/** Drops the beginnings of streams beyond what retention keeps: whole messages, once the stream says so. */
export class Trims {
  readonly #parts: ClusterParts;
  readonly #states: StateReader;
  readonly #publisher: Publisher;
  readonly #edges: ForkEdges;
  readonly #reserve: Reserve;
  readonly #underway = new Set<ClusterStream>();
  #trims = 0;
  #trimmedBytes = 0;

  constructor(parts: ClusterParts, states: StateReader, publisher: Publisher, edges: ForkEdges, reserve: Reserve) {
    this.#parts = parts;
    this.#states = states;
    this.#publisher = publisher;
    this.#edges = edges;
    this.#reserve = reserve;
  }

  /** How often streams were trimmed here, and how many bytes. */
  get figures(): { readonly trims: number; readonly trimmedBytes: number } {
    return { trims: this.#trims, trimmedBytes: this.#trimmedBytes };
  }

  /** Whether enough is beyond the limits that no fork needs; or it is time to look whether one does. */
  isDue(stream: ClusterStream, limits: RetentionLimits, nowMs: number): boolean {
    const { maxBytes, maxAgeMs } = limits;
    return (
      stream.standing === "live" &&
      (stream.forkCount === 0 || stream.mayHaveFewerForks(nowMs)) &&
      !this.#underway.has(stream) &&
      stream.isExcess({ maxBytes: maxBytes + Math.floor(maxBytes * SLACK), maxAgeMs: maxAgeMs * (1 + SLACK) }, nowMs)
    );
  }

  /** Drops the messages of which `limits` keep nothing, behind all that waits. */
  async trim(stream: ClusterStream, limits: RetentionLimits, nowMs: number): Promise<void> {
    this.#underway.add(stream);
    try {
      if (stream.forkCount > 0) await this.#states.recountForks(stream);
      if (stream.forkCount > 0) return;
      const { earliest } = stream;
      const isStored = await new Promise<boolean>((resolve) => {
        const find = (): Promise<Beginning | null> => this.#beginning(stream, limits, nowMs);
        this.#publisher.trim(stream, find, (how) => resolve(how === "durable"));
      });
      if (isStored) await this.#trimmed(stream, earliest);
    } finally {
      this.#underway.delete(stream);
    }
  }

  /** Where the stream would begin with what `limits` keep; `null` where it can't be told now. */
  async #beginning(stream: ClusterStream, limits: RetentionLimits, nowMs: number): Promise<Beginning | null> {
    const { tail } = stream.state;
    const bytesFrom = tail - limits.maxBytes;
    const timeFrom = nowMs - limits.maxAgeMs;
    // What a fork shares is older than the fork.
    const isAllOld = (stream.newestAtMs ?? stream.config.createdAtMs) < timeFrom;
    if (bytesFrom >= tail || isAllOld) return { position: tail, atMs: nowMs };
    const byBytes = bytesFrom > stream.earliest ? await this.#firstFrom(stream, bytesFrom) : null;
    const byTime = timeFrom > -Infinity ? await this.#firstSince(stream, timeFrom) : null;
    const [first] = [byBytes, byTime]
      .flatMap((change) => (change === null ? [] : [change]))
      .sort((left, right) => right.from - left.from);
    return first === undefined || first.from <= stream.earliest
      ? null
      : { position: first.from, atMs: first.newestAtMs };
  }

  /** The message with the byte at `position`. */
  async #firstFrom(stream: ClusterStream, position: Position): Promise<Change | null> {
    const { owner } = ownerAt(stream, position);
    const found = await firstBeyond(this.#parts, owner, BYTES, position, owner.state.tail);
    return found?.change ?? null;
  }

  /** The first message of what a stream keeps, its sources' first, that was appended to at `atMs` or later. */
  async #firstSince(stream: ClusterStream, atMs: number): Promise<Change | null> {
    const lastOldMs = Math.ceil(atMs) - 1;
    for (const { owner, end } of lineOf(stream)) {
      const isSource = owner !== stream;
      const newest = isSource ? await this.#firstFrom(owner, end - 1) : null;
      // A server that is behind can't say how old it is what the fork shares.
      if (isSource && newest === null) return null;
      if (newest !== null && newest.newestAtMs <= lastOldMs) continue;
      const found = await firstBeyond(this.#parts, owner, TIMES, lastOldMs, owner.state.touchedAtMs);
      // What the source was appended to since is none of the fork's.
      return found !== null && found.change.from < end ? found.change : null;
    }
    return null;
  }

  async #trimmed(stream: ClusterStream, before: Position): Promise<void> {
    this.#trims += 1;
    this.#trimmedBytes += stream.earliest - before;
    const { log, subjects } = this.#parts;
    // A fork that is made after this count begins at `earliest` or later, and needs nothing that is dropped.
    const { earliest, ownStart } = stream;
    const hasForks = (await log.count(subjects.ofEdges(stream.name, stream.id))) > 0;
    if (!hasForks) await this.#drop(stream, earliest);
    await this.#reserve.refillFor(stream.name);
    // Forks of it may need what it shares. One that begins at its very point needs its source: that tells who wrote the
    // byte before.
    if (!hasForks && earliest > ownStart && before <= ownStart) await this.#edges.untie(stream);
  }

  /** Drops the messages before `earliest`, unless a snapshot among them is still the last. */
  async #drop(stream: ClusterStream, earliest: Position): Promise<void> {
    const { log, subjects } = this.#parts;
    if (stream.standing !== "live") return;
    const keptFrom = await this.#firstKept(stream, earliest);
    // A server that is behind can't say where the first message is that is kept.
    if (keptFrom === null) return;
    await log.purge(subjects.ofStream(stream.name), Math.min(keptFrom, stream.snapshot?.sequence ?? Infinity));
  }

  /** The sequence of the message with the byte at `earliest`, or of the last one where none is kept. */
  async #firstKept(stream: ClusterStream, earliest: Position): Promise<number | null> {
    const { sequence, state } = stream;
    // What a fork keeps of its source is in the source's own messages.
    if (earliest < stream.ownStart) return null;
    if (earliest === state.tail) return sequence;
    const first = await firstBeyond(this.#parts, stream, BYTES, earliest, state.tail);
    return first !== null && first.change.from <= earliest ? first.sequence : null;
  }
}
