import type { NameRange } from "../protocol/names/name-range.js";

/** Most names of a leaf; it is cut in two when there are more. */
const MAX_LEAF_NAMES = 256;
/** Names of a leaf made at once: it has room for more. */
const NEW_LEAF_NAMES = 192;

/** Where a name is, or would be. */
interface Slot {
  readonly leaf: number;
  readonly at: number;
  readonly isThere: boolean;
}

/** What a name costs in memory beside its text. */
const BYTES_BESIDE_TEXT = 40;

/** About what a name takes in memory, in bytes. */
export function bytesOfName(name: string): number {
  return name.length + BYTES_BESIDE_TEXT;
}

/** Names in the order of their UTF-16 code units. */
export class SortedNames {
  /** None is empty, but for the only one. */
  readonly #leaves: string[][] = [[]];
  #size = 0;
  #bytes = 0;

  /** Of names that are in order, each once, and no pieces of longer texts. */
  static of(ordered: readonly string[]): SortedNames {
    const names = new SortedNames();
    for (let at = 0; at < ordered.length; at += NEW_LEAF_NAMES)
      names.#leaves[at / NEW_LEAF_NAMES] = ordered.slice(at, at + NEW_LEAF_NAMES);
    names.#size = ordered.length;
    for (const name of ordered) names.#bytes += bytesOfName(name);
    return names;
  }

  get size(): number {
    return this.#size;
  }

  /** About what they take in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a name, no piece of a longer text. */
  add(name: string): void {
    const { leaf: index, at, isThere } = this.#find(name);
    if (isThere) return;
    const leaf = this.#leaves[index] ?? [];
    leaf.splice(at, 0, name);
    this.#size += 1;
    this.#bytes += bytesOfName(name);
    if (leaf.length > MAX_LEAF_NAMES) this.#leaves.splice(index + 1, 0, leaf.splice(leaf.length / 2));
  }

  remove(name: string): void {
    const { leaf: index, at, isThere } = this.#find(name);
    if (!isThere) return;
    const leaf = this.#leaves[index] ?? [];
    leaf.splice(at, 1);
    this.#size -= 1;
    this.#bytes -= bytesOfName(name);
    if (leaf.length === 0 && this.#leaves.length > 1) this.#leaves.splice(index, 1);
  }

  /** The first names of a range in order, at most `count`. What is behind the range costs nothing. */
  slice({ from, to }: NameRange, count: number): string[] {
    const { leaf, at } = this.#find(from);
    const found: string[] = [];
    for (let index = leaf, start = at; found.length < count && index < this.#leaves.length; index += 1, start = 0) {
      const names = this.#leaves[index] ?? [];
      const end = to === null ? names.length : firstFrom(names.length, (each) => (names[each] ?? "") >= to);
      found.push(...names.slice(start, Math.min(end, start + count - found.length)));
      if (end < names.length) break;
    }
    return found;
  }

  #find(name: string): Slot {
    const leaf = Math.max(0, firstFrom(this.#leaves.length, (at) => (this.#leaves[at]?.[0] ?? "") > name) - 1);
    const names = this.#leaves[leaf] ?? [];
    const at = firstFrom(names.length, (index) => (names[index] ?? "") >= name);
    return { leaf, at, isThere: names[at] === name };
  }
}

/** The first index for which `isIn` is true, as it is for all after it; `length` where there is none. */
function firstFrom(length: number, isIn: (at: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isIn(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
