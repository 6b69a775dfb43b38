import type { ClusterParts } from "./reading/state-reader.js";

/** What a lease says. */
interface Lease {
  readonly holder: string;
  readonly untilMs: number;
}

/** Longer than the pause between two sweeps, so that its holder keeps it. */
const LEASE_MS = 90_000;
const NO_BODY = Buffer.alloc(0);

/**
 * Lets one front end at a time look for what has expired. It only spares work: whatever a sweep does is harmless where
 * two do it, so clocks that differ do no harm either.
 */
export class SweepLease {
  readonly #parts: ClusterParts;
  readonly #holder: string;
  #sequence: number | null = null;

  /** `holder` is unique to this front end. */
  constructor(parts: ClusterParts, holder: string) {
    this.#parts = parts;
    this.#holder = holder;
  }

  /** Whether this front end has the lease from now on. Throws LogUnavailableError. */
  async take(): Promise<boolean> {
    const { log, subjects, clock } = this.#parts;
    const subject = subjects.ofSweepLease;
    const last = await log.last(subject);
    const nowMs = clock.nowMs();
    if (last !== null) {
      const { holder, untilMs } = JSON.parse(last.head) as Lease; // only front ends write it
      // One from a clock far ahead does not count for ever.
      if (holder !== this.#holder && untilMs > nowMs && untilMs <= nowMs + 2 * LEASE_MS) return false;
    }
    const head = JSON.stringify({ holder: this.#holder, untilMs: nowMs + LEASE_MS } satisfies Lease);
    const published = await log.publish(subject, head, NO_BODY, last?.sequence ?? 0);
    // Where there is no room for a lease, all sweep: that makes room.
    if (published.kind === "full") return true;
    if (published.kind !== "stored") return false;
    this.#sequence = published.sequence;
    await log.purge(subject, published.sequence);
    return true;
  }

  /** Gives the lease up, where this front end has it. */
  async give(): Promise<void> {
    if (this.#sequence === null) return;
    const { log, subjects } = this.#parts;
    await log.purge(subjects.ofSweepLease, this.#sequence + 1);
    this.#sequence = null;
  }
}
