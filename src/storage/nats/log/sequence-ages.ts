import type { ShardState } from "./continuity.js";

/** How long a change may linger on its way: what looks dead before that may yet come to life. */
export const LINGERING_MS = 10 * 60_000;
/** How far apart marks are, at least. */
const STEP_MS = 20_000;

/** All messages up to `last` were there at `atMs`. */
interface Mark {
  readonly atMs: number;
  readonly last: number;
}

/**
 * Knows which messages have been in their shards for long: since this front end saw a shard that had given out their
 * sequences. The times in messages are of other machines' clocks, which may be wrong, as this one's may be.
 */
export class SequenceAges {
  readonly #nowMs: () => number;
  readonly #marks = new Map<string, { readonly created: string; marks: readonly Mark[] }>();

  /** `nowMs` is a clock that never jumps. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Notes what a shard has now; its leader said so. */
  saw(shard: string, { created, last }: Pick<ShardState, "created" | "last">): void {
    const atMs = this.#nowMs();
    const known = this.#marks.get(shard);
    const newest = known?.marks.at(-1);
    // Sequences of a shard that was made anew, or restored, are given out again.
    if (known?.created !== created || newest === undefined || newest.last > last)
      this.#marks.set(shard, { created, marks: [{ atMs, last }] });
    else if (atMs - newest.atMs >= STEP_MS) known.marks = [...this.#stillAsked(known.marks, atMs), { atMs, last }];
  }

  /** Begins anew with a shard, or with all: after a power failure another leader may give sequences out again. */
  forget(shard: string | null = null): void {
    if (shard === null) this.#marks.clear();
    else this.#marks.delete(shard);
  }

  /** Without those before the last one that is old enough. */
  #stillAsked(marks: readonly Mark[], nowMs: number): readonly Mark[] {
    const from = marks.findLastIndex(({ atMs }) => nowMs - atMs >= LINGERING_MS);
    return marks.slice(Math.max(0, from));
  }

  /** Whether a message has certainly been there for {@link LINGERING_MS}. */
  hasSettled(shard: string, sequence: number): boolean {
    const mark = this.#marks.get(shard)?.marks.find(({ last }) => last >= sequence);
    return mark !== undefined && this.#nowMs() - mark.atMs >= LINGERING_MS;
  }
}
