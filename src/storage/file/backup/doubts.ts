/** In the place of names: every stream is doubted. */
export const EVERYTHING = "*";

/** With more than so many streams to name, all are doubted. */
const MAX_NAMES = 1000;

/**
 * Streams of which a backup may have something else than what was written, by the names of their directories in it.
 * What it has of them is looked at byte by byte in the next pass, whose findings take their place once it is complete:
 * so nothing found is forgotten where a pass ends early, and what is damaged for ever is told of each time.
 */
export class Doubts {
  #before: ReadonlySet<string>;
  readonly #now = new Set<string>();
  readonly #save: () => Promise<void>;
  #saved: Promise<void> = Promise.resolve();

  /** Doubts what an earlier backup did; `save` keeps {@link names} for the next one. */
  constructor(before: readonly string[], save: () => Promise<void>) {
    this.#before = new Set(before);
    this.#save = save;
  }

  /** Those to remember by now. */
  get names(): readonly string[] {
    const names = new Set([...this.#before, ...this.#now]);
    return names.size > MAX_NAMES || names.has(EVERYTHING) ? [EVERYTHING] : [...names];
  }

  /** What was found by now is to be looked at again. */
  beginPass(): void {
    this.#before = new Set(this.names);
    this.#now.clear();
  }

  /** Every stream was looked at: what was found takes the place of what was known before. */
  endPass(): void {
    this.#before = new Set();
  }

  /** Whether what the backup has of the stream is to be looked at. */
  has(name: string): boolean {
    return this.#before.has(name) || this.#before.has(EVERYTHING);
  }

  /** The stream is doubted, and that is permanent once this resolves. */
  async add(name: string): Promise<void> {
    const isNamed = this.#before.has(name) || this.#now.has(name) || this.names.includes(EVERYTHING);
    if (!this.#now.has(name)) this.#now.add(this.#now.size < MAX_NAMES ? name : EVERYTHING);
    if (isNamed) return this.#saved;
    this.#saved = this.#saved.then(this.#save);
    await this.#saved;
  }
}
