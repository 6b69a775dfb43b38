import type { Position, RetentionLimits } from "../../storage.js";
import type { ClusterStream } from "../memory/cluster-stream.js";
import { BYTES, firstBeyond, ownerAt, TIMES } from "../reading/message-search.js";
import type { ClusterParts } from "../reading/state-reader.js";
import type { ForkEdges } from "./fork-edges.js";
import type { Beginning, Publisher } from "./publisher.js";
import type { Reserve } from "./reserve.js";

/** A stream is trimmed once an eighth more is kept than the limit says: a trim costs a message. */
const SLACK = 1 / 8;

/** Drops the beginnings of streams beyond what retention keeps: whole messages, once the stream says so. */
export class Trims {
  readonly #parts: ClusterParts;
  readonly #publisher: Publisher;
  readonly #edges: ForkEdges;
  readonly #reserve: Reserve;
  readonly #underway = new Set<ClusterStream>();
  #trims = 0;
  #trimmedBytes = 0;

  constructor(parts: ClusterParts, publisher: Publisher, edges: ForkEdges, reserve: Reserve) {
    this.#parts = parts;
    this.#publisher = publisher;
    this.#edges = edges;
    this.#reserve = reserve;
  }

  /** How often streams were trimmed here, and how many bytes. */
  get figures(): { readonly trims: number; readonly trimmedBytes: number } {
    return { trims: this.#trims, trimmedBytes: this.#trimmedBytes };
  }

  /** Whether enough is beyond the limits. */
  isDue(stream: ClusterStream, limits: RetentionLimits, nowMs: number): boolean {
    const { maxBytes } = limits;
    return (
      stream.standing === "live" &&
      stream.forkCount === 0 &&
      !this.#underway.has(stream) &&
      stream.isExcess({ ...limits, maxBytes: maxBytes + Math.floor(maxBytes * SLACK) }, nowMs)
    );
  }

  /** Drops the messages of which `limits` keep nothing, behind all that waits. */
  async trim(stream: ClusterStream, limits: RetentionLimits, nowMs: number): Promise<void> {
    this.#underway.add(stream);
    const { earliest } = stream;
    try {
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
    const { tail, touchedAtMs } = stream.state;
    const bytesFrom = tail - limits.maxBytes;
    const timeFrom = nowMs - limits.maxAgeMs;
    const isAllOld = (stream.newestAtMs ?? 0) < timeFrom;
    if (bytesFrom >= tail || isAllOld) return { position: tail, atMs: nowMs };
    const { owner } = ownerAt(stream, Math.max(stream.earliest, bytesFrom));
    const byBytes =
      bytesFrom > stream.earliest ? await firstBeyond(this.#parts, owner, BYTES, bytesFrom, owner.state.tail) : null;
    const byTime =
      timeFrom > -Infinity ? await firstBeyond(this.#parts, owner, TIMES, Math.ceil(timeFrom) - 1, touchedAtMs) : null;
    const [first] = [byBytes, byTime]
      .flatMap((placed) => (placed === null ? [] : [placed.change]))
      .sort((left, right) => right.from - left.from);
    return first === undefined || first.from <= stream.earliest
      ? null
      : { position: first.from, atMs: first.newestAtMs };
  }

  async #trimmed(stream: ClusterStream, before: Position): Promise<void> {
    this.#trims += 1;
    this.#trimmedBytes += stream.earliest - before;
    const { log, subjects } = this.#parts;
    // What a fork keeps that is made after the count begins there or later.
    const { earliest, ownStart } = stream;
    const hasForks = (await log.count(subjects.ofEdges(stream.name, stream.id))) > 0;
    if (!hasForks) await this.#drop(stream, earliest);
    await this.#reserve.refillFor(stream.name);
    // Forks of it may need what it shares. At the very point the source still tells who wrote the byte before.
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
