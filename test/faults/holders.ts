import type { Incarnation } from "./model.js";
import type { Name } from "./names.js";

/** Who needs a deleted stream: those that were forked from it, and theirs, as far as clients can know. */
export class Holders {
  readonly #names: readonly Name[];
  /** Whether what nobody needs is gone: before, a stream may go a little later than its last fork. */
  isSwept = false;
  /** A stream was deleted that could not be read: neither its source nor its forks are told of that. */
  deletedDamaged = false;

  constructor(names: readonly Name[]) {
    this.#names = names;
  }

  /** Whether a fork of a stream of this name may have been there at tick `since` or later. */
  mayHold(name: string, since: number): boolean {
    const seen = new Set([name]);
    // The set grows while it is gone through: those whose fork was deleted may be held by that one's forks.
    for (const source of seen) {
      for (const fork of this.#forks()) {
        if (fork.origin?.name !== source) continue;
        if (!this.isSwept || this.deletedDamaged || fork.releasedAt >= since) return true;
        if (!fork.initial.refused) seen.add(fork.name);
      }
    }
    return false;
  }

  /** Whether a fork of a stream of this name was there, beyond doubt, all the time from tick `since` until now. */
  mustHold(name: string, since: number, nowMs: number): boolean {
    return !this.deletedDamaged && this.#forks().some((fork) => fork.origin?.source?.name === name && this.#isKept(fork, since, nowMs));
  }

  #isKept(fork: Incarnation, since: number, nowMs: number): boolean {
    if (fork.wasThereSince(since, nowMs)) return true;
    return this.#forks().some((next) => next.origin?.source === fork && this.#isKept(next, since, nowMs));
  }

  #forks(): Incarnation[] {
    return this.#names.flatMap(({ incarnations }) => incarnations.filter(({ origin }) => origin !== null));
  }
}
