import type { Clock } from "../ops/clock.js";
import type { Caller } from "./rights/caller.js";

/** A caller that was found, and for what. */
interface Entry {
  readonly text: string;
  readonly caller: Caller;
  /** The stream that it was found for; `null` where it counts for all. */
  readonly name: string | null;
  isUsed: boolean;
}

/** Entries that are found without hashing their text, which would take twice as long. */
const SLOTS = 512;

/** The end of a secret or a signature, of 6 bits each but for the last. */
const TAIL_CHARS = 13;

/** What bounds it. */
export interface RememberedBounds {
  readonly entries: number;
  /** Of the texts, together. */
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
  /** Of the entries, those that were found last, by {@link slotOf}. */
  readonly #slots = new Array<Entry | null>(SLOTS).fill(null);
  #chars = 0;

  constructor(bounds: RememberedBounds, clock: Pick<Clock, "nowMs">) {
    this.#bounds = bounds;
    this.#clock = clock;
  }

  /** Who showed `text` for `name`; `null` when it is not known, or over. Allocates nothing. */
  find(text: string, name: string | null): Caller | null {
    const entry = this.#entryOf(text);
    if (entry === null || entry.name !== name) return null;
    const { endsAtMs } = entry.caller;
    if (endsAtMs !== Infinity && this.#clock.nowMs() >= endsAtMs) {
      this.#forget(text);
      return null;
    }
    entry.isUsed = true;
    return entry.caller;
  }

  #entryOf(text: string): Entry | null {
    const slot = slotOf(text);
    const recent = this.#slots[slot] ?? null;
    if (recent !== null && haveSameTail(recent.text, text) && recent.text === text) return recent;
    const entry = this.#entries.get(text) ?? null;
    if (entry !== null) this.#slots[slot] = entry;
    return entry;
  }

  /** Remembers who showed `text`. */
  keep(text: string, name: string | null, caller: Caller): void {
    if (text.length > this.#bounds.chars) return;
    this.#forget(text);
    this.#entries.set(text, { text, caller, name, isUsed: false });
    this.#chars += text.length;
    while (this.#entries.size > this.#bounds.entries || this.#chars > this.#bounds.chars) this.#forgetOne();
  }

  clear(): void {
    this.#entries.clear();
    this.#slots.fill(null);
    this.#chars = 0;
  }

  #forget(text: string): void {
    if (!this.#entries.delete(text)) return;
    this.#chars -= text.length;
    const slot = slotOf(text);
    if (this.#slots[slot]?.text === text) this.#slots[slot] = null;
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

/** By what stands in front of the last character, which has only some of its bits. */
function slotOf(text: string): number {
  const end = text.length;
  return end < 3 ? 0 : ((text.charCodeAt(end - 2) << 4) ^ text.charCodeAt(end - 3)) % SLOTS;
}

/**
 * Whether both end alike, in a time that does not tell how much of it does. Texts are only compared whole when they do:
 * how long that takes would tell a guess how far it is right, and nobody guesses 72 bits.
 */
function haveSameTail(one: string, other: string): boolean {
  const { length } = one;
  if (other.length !== length) return false;
  let difference = 0;
  for (let at = Math.max(0, length - TAIL_CHARS); at < length; at++)
    difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}
