import type { ForkOrigin, Settlement } from "../../storage.js";
import { decodeChange, decodeEdge, encodeEdge, type Change, type Edge } from "../log/change.js";
import { whereAvailable, type OnUnavailable, type Published } from "../log/replicated-log.js";
import type { ClusterStream } from "../memory/cluster-stream.js";
import type { ClusterParts, StateReader } from "../reading/state-reader.js";
import { publishAnyhow, type PublishingOptions } from "./publishing.js";
import { dropNote } from "./read-notes.js";

/**
 * Ties forks to their sources. An edge in the source's shard says that a fork needs the source's bytes. Whoever makes a
 * fork writes its edge before it looks whether the source still lives; whoever deletes writes the tombstone before it
 * looks for edges: so one of them sees the other.
 */
export class ForkEdges {
  readonly #parts: ClusterParts;
  readonly #states: StateReader;
  readonly #publishing: PublishingOptions;

  constructor(parts: ClusterParts, states: StateReader, publishing: PublishingOptions) {
    this.#parts = parts;
    this.#states = states;
    this.#publishing = publishing;
  }

  /** Ties a fork before it is made; why it can't be made otherwise: then it is to be untied. */
  async tie(origin: ForkOrigin, fork: string, forkId: string): Promise<Settlement | null> {
    const { log, subjects, clock } = this.#parts;
    const edge = subjects.ofEdge(origin.name, origin.id, forkId);
    const head = encodeEdge({ source: origin.name, id: origin.id, fork, forkId, atMs: clock.nowMs() });
    const publish = async (): Promise<Published["kind"]> => (await log.publish(edge, head, Buffer.alloc(0), null)).kind;
    const published = await publishAnyhow(this.#publishing, publish);
    if (published === "full") return "storage-full";
    if (published !== "stored") return "overloaded";
    const last = await log.last(subjects.ofStream(origin.name));
    const source = last === null ? null : decodeChange(last).change;
    const isThere = source?.id === origin.id && source.deletedAtMs === null;
    return isThere && source.earliest <= origin.earliest.position ? null : "tail-moved";
  }

  /** Gives up the hold of a fork on its source: it is gone, or keeps nothing of what it shares. */
  async untie({ id, config, parent }: ClusterStream): Promise<void> {
    if (config.forkedFrom === null) return;
    const { log, subjects } = this.#parts;
    await log.purge(subjects.ofEdge(config.forkedFrom.name, config.forkedFrom.id, id), null);
    if (parent !== null) await this.#collect(parent);
  }

  /**
   * Drops the edges of forks that were never made, or whose server ended before it gave up their hold. What their
   * sources keep goes with their tombstones. What can't be looked at now is left, and `onUnavailable` told.
   */
  async sweep(onUnavailable: OnUnavailable): Promise<void> {
    for await (const { head, sequence } of this.#parts.log.heads("edges", onUnavailable)) {
      const edge = decodeEdge(head);
      await whereAvailable(() => this.#dropDead(edge, sequence), onUnavailable);
    }
  }

  async #dropDead({ source, id, fork, forkId }: Edge, sequence: number): Promise<void> {
    const { log, subjects } = this.#parts;
    const subject = subjects.ofEdge(source, id, forkId);
    if (!log.hasSettled(subject, sequence)) return;
    const last = await log.last(subjects.ofStream(fork));
    const there = last === null ? null : decodeChange(last).change;
    // Forks of it may need what it keeps nothing of itself.
    const holds = there?.id === forkId && (keepsShared(there) || (await this.#hasForks(fork, forkId)));
    if (!holds) await log.purge(subject, null);
  }

  async #hasForks(name: string, id: string): Promise<boolean> {
    return (await this.#states.countForks({ name, id })) > 0;
  }

  /** Drops the bytes of a deleted source that no fork needs any more, and in turn those of its own. */
  async #collect(source: ClusterStream): Promise<void> {
    // One that lives has its forks counted as well.
    source.forksCountedAtMs = 0;
    await this.#states.refresh(source);
    if (source.standing === "gone") await this.dropBytes(source);
  }

  /** Drops what is before the tombstone of a deleted stream without forks, and the note of its last read. */
  async dropBytes(stream: ClusterStream): Promise<void> {
    const { log, subjects } = this.#parts;
    await log.purge(subjects.ofStream(stream.name), stream.sequence);
    await this.untie(stream);
    await dropNote(this.#parts, stream);
  }
}

/** Whether a fork lives, and begins where it needs its source: at its point, too, the offset names who wrote before. */
function keepsShared({ deletedAtMs, earliest, config }: Change): boolean {
  return deletedAtMs === null && earliest <= (config.forkedFrom?.point ?? 0);
}
