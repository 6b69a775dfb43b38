import type { Clock } from "../ops/clock.js";
import type { Caller } from "./rights/caller.js";

/** A caller that was found, and for what. */
interface Entry {
  readonly caller: Caller;
  /** The stream that it was found for; `null` where it counts for all. */
  readonly name: string | null;
  /** What it counts for: its characters, or its bytes of memory where these are more. */
  readonly size: number;
  isUsed: boolean;
}

/** What bounds it. */
export interface RememberedBounds {
  readonly entries: number;
  /** Of the texts, together; one whose caller takes more memory counts as so much. */
  readonly chars: number;
}

/**
 * Who showed which credential: so that a second request with it costs a look-up. Only those that were verified come in;
 * a flood of wrong ones pushes nothing out. When it is full, those that were not used since the last round go first.
 */
export class Remembered {
  readonly #bounds: RememberedBounds;
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #entries = new Map<string, Entry>();
  #chars = 0;

  constructor(bounds: RememberedBounds, clock: Pick<Clock, "nowMs">) {
    this.#bounds = bounds;
    this.#clock = clock;
  }

  /** Who showed `text` for `name`; `null` when it is not known, or over. Allocates nothing. */
  find(text: string, name: string | null): Caller | null {
    const entry = this.#entries.get(text);
    if (entry === undefined || entry.name !== name) return null;
    const { endsAtMs } = entry.caller;
    // Most never end: to ask for the time would cost as much as the rest here.
    if (endsAtMs !== Infinity && this.#clock.nowMs() >= endsAtMs) {
      this.#forget(text);
      return null;
    }
    entry.isUsed = true;
    return entry.caller;
  }

  /** Remembers who showed `text`; `weight` is what the caller takes of memory, in bytes. */
  keep(text: string, name: string | null, caller: Caller, weight = 0): void {
    const size = Math.max(text.length, weight);
    if (size > this.#bounds.chars) return;
    this.#forget(text);
    this.#entries.set(text, { caller, name, size, isUsed: false });
    this.#chars += size;
    while (this.#entries.size > this.#bounds.entries || this.#chars > this.#bounds.chars) this.#forgetOne();
  }

  clear(): void {
    this.#entries.clear();
    this.#chars = 0;
  }

  #forget(text: string): void {
    this.#chars -= this.#entries.get(text)?.size ?? 0;
    this.#entries.delete(text);
  }

  /** The oldest goes, unless it was used: then it is the youngest again. */
  #forgetOne(): void {
    for (const [text, entry] of this.#entries) {
      if (!entry.isUsed) return this.#forget(text);
      entry.isUsed = false;
      this.#entries.delete(text);
      this.#entries.set(text, entry);
    }
  }
}
