import { nextTurn } from "../../../ops/turns.js";
import type { NameRange } from "../../../protocol/names/name-range.js";

/** Names that are put in order in one turn of the event loop: that takes about a millisecond. */
const BURST = 4096;
/** Names that are looked at in one turn. */
const TURN = 65_536;

/** Names in any order as lists that are each in order, for {@link mergedNames}. */
export async function orderedRuns(names: Iterable<string>): Promise<string[][]> {
  const runs: string[][] = [];
  let run: string[] = [];
  for (const name of names) {
    if (run.push(name) < BURST) continue;
    runs.push(run.sort());
    run = [];
    await nextTurn();
  }
  return [...runs, run.sort()];
}

/** Ordered lists as one, each name once. It takes turns: a million names at once would keep requests waiting. */
export async function mergedNames(lists: readonly string[][]): Promise<string[]> {
  const waiting = [[], ...lists];
  // What is merged goes behind all others, so lists of about one length are merged.
  for (let at = 0; at + 1 < waiting.length; at += 2) {
    waiting.push(await merged(waiting[at] ?? [], waiting[at + 1] ?? []));
    waiting[at] = waiting[at + 1] = [];
  }
  return waiting.at(-1) ?? [];
}

async function merged(left: readonly string[], right: readonly string[]): Promise<string[]> {
  const all: string[] = [];
  let [fromLeft, fromRight] = [0, 0];
  for (;;) {
    const end = all.length + BURST;
    while (all.length < end) {
      const one = left[fromLeft];
      const other = right[fromRight];
      const next = one === undefined || (other !== undefined && other < one) ? other : one;
      if (next === undefined) return all;
      if (one === next) fromLeft += 1;
      if (other === next) fromRight += 1;
      if (next !== all.at(-1)) all.push(next);
    }
    await nextTurn();
  }
}

/** Finds the first `count` names of a range, in order: among any number, in the memory of a few. */
export class FirstNames {
  readonly #range: NameRange;
  readonly #count: number;
  #found: string[] = [];
  /** This name and those after it are not among them. */
  #bound: string | null;

  constructor(range: NameRange, count: number) {
    this.#range = range;
    this.#count = count;
    this.#bound = range.to;
  }

  /** Looks at names in any order, in turns. */
  async lookAt(names: Iterable<string>): Promise<void> {
    let looked = 0;
    for (const name of names) {
      if (name >= this.#range.from && (this.#bound === null || name < this.#bound)) this.#take(name);
      if ((looked += 1) % TURN === 0) await nextTurn();
    }
  }

  /** The names that were found, each once. */
  get all(): string[] {
    this.#cut();
    return this.#found;
  }

  #take(name: string): void {
    this.#found.push(name);
    // In order only now and then: each name costs a few comparisons, however many there are.
    if (this.#found.length >= this.#count * 2 + BURST) this.#cut();
  }

  #cut(): void {
    const sorted = this.#found.sort();
    this.#found = sorted.filter((name, at) => name !== sorted[at - 1]).slice(0, this.#count);
    if (this.#found.length === this.#count) this.#bound = this.#found.at(-1) ?? this.#bound;
  }
}
