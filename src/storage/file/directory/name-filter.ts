/** Bits per name of a new filter, and of one too full: one name in 400, and one in 40, is taken for another. */
const BITS_PER_NAME = 16;
const CROWDED_BITS_PER_NAME = 8;
/** Bits that a name sets. */
const PROBES = 4;
const MIN_BITS = 1024;

/** Names in two to four bytes each (a Bloom filter): what was added is there, and what was not is there seldom. */
export class NameFilter {
  readonly #words: Uint32Array;
  readonly #mask: number;
  #count = 0;

  constructor(names: readonly string[]) {
    const bits = 2 ** Math.ceil(Math.log2(Math.max(MIN_BITS, names.length * BITS_PER_NAME)));
    this.#words = new Uint32Array(bits / 32);
    this.#mask = bits - 1;
    for (const name of names) this.add(name);
  }

  /** Whether so many were added that a larger one should take its place. */
  get isCrowded(): boolean {
    return this.#count * CROWDED_BITS_PER_NAME > this.#mask;
  }

  add(name: string): void {
    let isNew = false;
    const hash = hashOf(name);
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = this.#bitOf(hash, probe);
      if (this.#isSet(bit)) continue;
      isNew = true;
      this.#words[bit >>> 5] = (this.#words[bit >>> 5] ?? 0) | (1 << (bit & 31));
    }
    // A stream comes and goes, and is there only once.
    if (isNew) this.#count += 1;
  }

  /** False only for a name that was never added. */
  mayHave(name: string): boolean {
    const hash = hashOf(name);
    for (let probe = 0; probe < PROBES; probe++) if (!this.#isSet(this.#bitOf(hash, probe))) return false;
    return true;
  }

  #isSet(bit: number): boolean {
    return ((this.#words[bit >>> 5] ?? 0) & (1 << (bit & 31))) !== 0;
  }

  #bitOf(hash: number, probe: number): number {
    return (hash + probe * (mixed(hash) | 1)) & this.#mask;
  }
}

/** FNV-1a, with its bits mixed: names that differ at their end only differ everywhere. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
  return mixed(hash);
}

/** The last step of MurmurHash3. */
function mixed(value: number): number {
  const once = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return (twice ^ (twice >>> 16)) >>> 0;
}
