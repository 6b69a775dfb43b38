/** A set of numbers that mostly has at most one, in hundreds of thousands of streams: only more take a real set. */
export class SmallSet {
  #only: number | null = null;
  #more: Set<number> | null = null;

  constructor(members: Iterable<number> = []) {
    for (const member of members) this.add(member);
  }

  get size(): number {
    return this.#more?.size ?? (this.#only === null ? 0 : 1);
  }

  has(member: number): boolean {
    return this.#more === null ? this.#only === member : this.#more.has(member);
  }

  add(member: number): void {
    if (this.#more !== null) this.#more.add(member);
    else if (this.#only === null) this.#only = member;
    else if (this.#only !== member) this.#more = new Set([this.#only, member]);
  }

  delete(member: number): void {
    if (this.#more !== null) this.#more.delete(member);
    else if (this.#only === member) this.#only = null;
  }

  clear(): void {
    this.#only = null;
    this.#more = null;
  }

  *[Symbol.iterator](): Generator<number> {
    if (this.#more !== null) yield* this.#more;
    else if (this.#only !== null) yield this.#only;
  }
}
