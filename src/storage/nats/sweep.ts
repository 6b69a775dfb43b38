import type { ListedStream } from "../storage.js";
import { headOf, listedOf } from "./cluster-list.js";
import type { PlacedChange } from "./log/change.js";
import { whereAvailable, type LogUnavailableError, type OnUnavailable } from "./log/replicated-log.js";
import { seemsExpired, type ClusterParts, type StateReader } from "./reading/state-reader.js";
import { SweepLease } from "./sweep-lease.js";
import type { ForkEdges } from "./writing/fork-edges.js";
import { dropNote } from "./writing/read-notes.js";
import type { Reserve } from "./writing/reserve.js";

/** Goes through all that the log has, and drops what nobody needs any more. */
export class Sweep {
  readonly #parts: ClusterParts;
  readonly #states: StateReader;
  readonly #edges: ForkEdges;
  readonly #reserve: Reserve;
  readonly #lease: SweepLease;

  /** `holder` is unique to this front end. */
  constructor(parts: ClusterParts, states: StateReader, edges: ForkEdges, reserve: Reserve, holder: string) {
    this.#parts = parts;
    this.#states = states;
    this.#edges = edges;
    this.#reserve = reserve;
    this.#lease = new SweepLease(parts, holder);
  }

  /**
   * All streams, where this front end is the one that sweeps; none otherwise. A part of the log that does not answer
   * keeps the others from nothing, that with the lease as well: at the end it throws that part's LogUnavailableError.
   */
  async *streams(): AsyncGenerator<ListedStream> {
    let first: LogUnavailableError | null = null;
    const skip = (fault: LogUnavailableError): void => void (first ??= fault);
    if (!(await this.#isMine(skip))) return;
    await this.#reserve.fill(skip);
    await this.#edges.sweep(skip);
    for await (const message of this.#parts.log.heads("streams", skip)) {
      const placed = headOf(message);
      if (placed.change.deletedAtMs !== null) await whereAvailable(() => this.#dropOldTombstone(placed), skip);
      else {
        const listed = await whereAvailable(() => this.#listed(placed), skip);
        if (listed !== null) yield listed;
      }
    }
    if (first !== null) throw first;
  }

  /** Where nobody can say who sweeps, all do: whatever a sweep does is harmless where two do it. */
  async #isMine(skip: OnUnavailable): Promise<boolean> {
    return (await whereAvailable(() => this.#lease.take(), skip)) ?? true;
  }

  /** With the time of its last read, where its own says that its time is over. */
  async #listed(placed: PlacedChange): Promise<ListedStream> {
    const listed = listedOf(placed);
    const { name, config, touchedAtMs } = listed;
    if (!seemsExpired(config, touchedAtMs, this.#parts.clock.nowMs())) return listed;
    return { ...listed, touchedAtMs: Math.max(touchedAtMs, await this.#states.touchedAtMs(name, placed.change.id)) };
  }

  async #dropOldTombstone({ change, sequence }: PlacedChange): Promise<void> {
    const { name, id } = change;
    const { log, subjects } = this.#parts;
    if (!log.hasSettled(subjects.ofStream(name), sequence)) return;
    if ((await this.#states.countForks({ name, id })) > 0) return;
    // One that came since is found only by the tombstone.
    await dropNote(this.#parts, change);
    await log.purge(subjects.ofStream(name), sequence + 1);
  }

  /** Lets another front end sweep. Throws LogUnavailableError. */
  stop(): Promise<void> {
    return this.#lease.give();
  }
}
