// Ends live reads when the right to them ends.

import type { Authority } from "../../auth/authority.js";
import type { Caller } from "../../auth/rights/caller.js";
import type { Clock, Timer } from "../../ops/clock.js";
import type { Standing } from "../exchange/standing.js";

/** No timer of the platform runs longer; a right that lasts longer is looked at again. */
const MAX_TIMER_MS = 24 * 3600 * 1000;

/** The rights of the live reads that are there now. */
export class LiveRights {
  readonly #authority: Authority;
  readonly #clock: Clock;
  readonly #watched = new Set<HeldRight>();
  /** How often the auth file has changed: a right that was found before may have gone since. */
  changes = 0;

  constructor(authority: Authority, clock: Clock) {
    this.#authority = authority;
    this.#clock = clock;
    authority.onChange(() => this.#reviewAll());
  }

  /** Looks after a right until it ends or is released. */
  watch(right: HeldRight): void {
    this.#watched.add(right);
    if (right.changesSeen === this.changes) this.#await(right);
    else this.#review(right);
  }

  /** Stops looking after it. */
  release(right: HeldRight): void {
    if (!this.#watched.delete(right)) return;
    right.timer?.cancel();
  }

  #reviewAll(): void {
    this.changes += 1;
    for (const right of this.#watched) this.#review(right);
  }

  #review(right: HeldRight): void {
    const caller = this.#authority.renew(right.caller);
    right.changesSeen = this.changes;
    if (caller === null || !isHeldBy(caller, right.name)) return this.#end(right);
    right.caller = caller;
    this.#await(right);
  }

  #await(right: HeldRight): void {
    right.timer?.cancel();
    right.timer = null;
    const leftMs = right.caller.endsAtMs - this.#clock.nowMs();
    if (leftMs <= 0) return this.#end(right);
    if (leftMs === Infinity) return;
    right.timer = this.#clock.after(Math.min(leftMs, MAX_TIMER_MS), () => this.#await(right));
  }

  #end(right: HeldRight): void {
    this.release(right);
    right.end();
  }
}

function isHeldBy(caller: Caller, name: string | null): boolean {
  return name === null ? caller.mayAnywhere("list") : caller.rightTo("read", name) !== null;
}

/** The right with which one request is served. */
export class HeldRight implements Standing {
  caller: Caller;
  /** The stream that is read; `null` for the list of streams. */
  readonly name: string | null;
  changesSeen: number;
  timer: Timer | null = null;
  readonly #rights: LiveRights;
  #react: (() => void) | null = null;

  /** `caller` is who sent the request by the auth file as it was after so many changes. */
  constructor(rights: LiveRights, caller: Caller, name: string | null, changesSeen: number) {
    this.#rights = rights;
    this.caller = caller;
    this.name = name;
    this.changesSeen = changesSeen;
  }

  get isPrivate(): boolean {
    return this.caller.id !== null;
  }

  get callerId(): string | null {
    return this.caller.id;
  }

  onEnd(react: () => void): void {
    this.#react = react;
    this.#rights.watch(this);
  }

  release(): void {
    if (this.#react !== null) this.#rights.release(this);
    this.#react = null;
  }

  /** The right is over. */
  end(): void {
    const react = this.#react;
    this.#react = null;
    react?.();
  }
}
