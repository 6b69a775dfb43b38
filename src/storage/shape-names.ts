import { TURN_OF_NAMES } from "../ops/turns.js";
import { ALL_NAMES, justAfter, type NameRange } from "../protocol/names/name-range.js";
import { keyInShape } from "../protocol/names/name-shape.js";
import { SortedNames } from "./sorted-names.js";

/** Names taken from the list of all at a time. */
const BURST = 512;
/** Most changes that wait: where more come than can be taken in, the index is given up. */
const MAX_CHANGES = 65_536;
/** What a name costs here, as its text is that of the list of all, and each key beside its text. */
const BYTES_OF_NAME = 16;
const BYTES_OF_KEY = 256;

interface Change {
  readonly name: string;
  /** Else it is removed. */
  readonly isAdded: boolean;
}

/**
 * The names that match the patterns of one shape, by their keys. It follows the list of all names a little later: how
 * long a pattern takes to match is its author's choice, and others have their turns meanwhile.
 */
export class ShapeNames {
  /** When it was last asked for, on a stopwatch. */
  askedAtMs = 0;
  readonly #keyOf: (name: string) => string | null;
  readonly #onGrowth: () => void;
  /** `null` once it is given up. */
  #byKey: Map<string, SortedNames> | null = new Map();
  #bytes = 0;
  /** What it has yet to take in, with what it has since {@link #work} was last idle. */
  readonly #changes: Change[] = [];
  #work: Promise<void> | null;

  /** `onGrowth` is called when it may have grown. */
  constructor(shape: string, all: SortedNames, onGrowth: () => void) {
    this.#keyOf = keyInShape(shape);
    this.#onGrowth = onGrowth;
    this.#work = this.#fill(all);
  }

  get isKept(): boolean {
    return this.#byKey !== null;
  }

  /** About what it takes in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Resolves when it has all that was noted before, or is given up; never rejects. */
  get current(): Promise<void> {
    return this.#work ?? Promise.resolve();
  }

  /** A name was added to the list of all, or removed. */
  note(name: string, isAdded: boolean): void {
    if (this.#byKey === null) return;
    if (this.#changes.length >= MAX_CHANGES) return this.drop();
    this.#changes.push({ name, isAdded });
    this.#work ??= this.#follow();
  }

  drop(): void {
    this.#byKey = null;
    this.#bytes = 0;
    this.#changes.length = 0;
  }

  /** The first names with `key` of a range in order, at most `count`; `null` when it is given up. */
  slice(key: string, range: NameRange, count: number): readonly string[] | null {
    if (this.#byKey === null) return null;
    return this.#byKey.get(key)?.slice(range, count) ?? [];
  }

  /** What changes meanwhile is taken in afterwards, in order: then the last change of a name is right. */
  async #fill(all: SortedNames): Promise<void> {
    // Whoever made it has it by then, and counts what it takes.
    await null;
    for (let range = ALL_NAMES; this.#byKey !== null;) {
      const names = all.slice(range, BURST);
      for (const name of names) {
        if (TURN_OF_NAMES.isSpent) await TURN_OF_NAMES.next();
        this.#take(name, true);
      }
      const last = names.at(-1);
      if (last === undefined || names.length < BURST) break;
      range = { from: justAfter(last), to: null };
    }
    await this.#follow();
  }

  async #follow(): Promise<void> {
    // Whoever made the change goes on first.
    await null;
    for (let at = 0; at < this.#changes.length; at += 1) {
      const change = this.#changes[at];
      if (TURN_OF_NAMES.isSpent) await TURN_OF_NAMES.next();
      if (change !== undefined) this.#take(change.name, change.isAdded);
    }
    this.#changes.length = 0;
    this.#work = null;
  }

  #take(name: string, isAdded: boolean): void {
    if (this.#byKey === null) return;
    const key = this.#keyOf(name);
    if (key === null) return;
    if (isAdded) this.#add(this.#byKey, key, name);
    else this.#remove(this.#byKey, key, name);
  }

  #add(byKey: Map<string, SortedNames>, key: string, name: string): void {
    let names = byKey.get(key);
    if (names === undefined) {
      names = new SortedNames();
      byKey.set(key, names);
      this.#bytes += BYTES_OF_KEY + key.length;
    }
    const { size } = names;
    names.add(name);
    this.#bytes += (names.size - size) * BYTES_OF_NAME;
    this.#onGrowth();
  }

  #remove(byKey: Map<string, SortedNames>, key: string, name: string): void {
    const names = byKey.get(key);
    if (names === undefined) return;
    const { size } = names;
    names.remove(name);
    this.#bytes -= (size - names.size) * BYTES_OF_NAME;
    if (names.size > 0) return;
    byKey.delete(key);
    this.#bytes -= BYTES_OF_KEY + key.length;
  }
}
