// Ends live reads when the right to them ends.

import type { Authority } from "../../auth/authority.js";
import type { Caller } from "../../auth/rights/caller.js";
import type { Clock, Timer } from "../../ops/clock.js";
import type { HeldRight, RightHolder, Rights } from "../exchange/held-right.js";

/** No timer of the platform runs longer; a right that lasts longer is looked at again. */
const MAX_TIMER_MS = 24 * 3600 * 1000;

/** The rights of the live reads that are there now. */
export class LiveRights implements Rights {
  readonly #authority: Authority;
  readonly #clock: Clock;
  readonly #watched = new Set<WatchedRight>();
  /** How often the auth file has changed: a right that was found before may have gone since. */
  changes = 0;

  constructor(authority: Authority, clock: Clock) {
    this.#authority = authority;
    this.#clock = clock;
    authority.onChange(() => this.#reviewAll());
  }

  hold(holder: RightHolder, react: () => void): HeldRight {
    const right = new WatchedRight(this, holder, react);
    this.#watched.add(right);
    if (holder.changesSeen === this.changes) this.#await(right);
    else this.#review(right);
    return right;
  }

  /** Stops looking after `right`. */
  release(right: WatchedRight): void {
    if (this.#watched.delete(right)) right.timer?.cancel();
  }

  /** Who sent a request that is under way, as the auth file has it now; `null` for one who may nothing any more. */
  callerOf(holder: RightHolder): Caller | null {
    if (holder.changesSeen !== this.changes && holder.caller !== null) {
      holder.caller = this.#authority.renew(holder.caller);
      holder.changesSeen = this.changes;
    }
    return holder.caller;
  }

  #reviewAll(): void {
    this.changes += 1;
    for (const right of this.#watched) this.#review(right);
  }

  #review(right: WatchedRight): void {
    const { holder } = right;
    const caller = holder.caller === null ? null : this.#authority.renew(holder.caller);
    holder.changesSeen = this.changes;
    if (caller === null || !isHeldBy(caller, holder.name)) return this.#end(right);
    holder.caller = caller;
    this.#await(right);
  }

  #await(right: WatchedRight): void {
    right.timer?.cancel();
    right.timer = null;
    const leftMs = (right.holder.caller?.endsAtMs ?? 0) - this.#clock.nowMs();
    if (leftMs <= 0) return this.#end(right);
    if (leftMs === Infinity) return;
    right.timer = this.#clock.after(Math.min(leftMs, MAX_TIMER_MS), () => this.#await(right));
  }

  #end(right: WatchedRight): void {
    this.release(right);
    right.react();
  }
}

function isHeldBy(caller: Caller, name: string | null): boolean {
  return name === null ? caller.mayAnywhere("list") : caller.rightTo("read", name) !== null;
}

/** A right that is watched. */
class WatchedRight implements HeldRight {
  readonly holder: RightHolder;
  readonly react: () => void;
  timer: Timer | null = null;
  readonly #rights: LiveRights;

  constructor(rights: LiveRights, holder: RightHolder, react: () => void) {
    this.#rights = rights;
    this.holder = holder;
    this.react = react;
  }

  release(): void {
    this.#rights.release(this);
  }
}
