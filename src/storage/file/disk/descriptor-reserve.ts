/** Opens and closes a descriptor that nobody reads, at once. Opening throws the system's error. */
export interface SpareFiles {
  open(): number;
  close(descriptor: number): void;
}

/** The most spare descriptors, and the part of the process's limit that they may take where that is low. */
const MAX_SPARES = 16;
const SHARE_OF_LIMIT = 1 / 8;

/**
 * A few descriptors that are kept open to be given up when what must be written can't open its file, because
 * connections, readers or the rest of the program have taken all others: the journal, and what frees it.
 *
 * A spare is closed and the file opened in one turn of the event loop, so that no connection is accepted in between;
 * and when a file is closed while spares are missing, its descriptor becomes one again in the same way.
 */
export class DescriptorReserve {
  readonly #files: SpareFiles;
  readonly #spares: number[] = [];
  #wanted = 0;
  #makeWay: (() => void) | null = null;

  constructor(files: SpareFiles) {
    this.#files = files;
  }

  /** Whether spares are missing. */
  get isShort(): boolean {
    return this.#spares.length < this.#wanted;
  }

  /**
   * Takes the spares of a process that may have `limit` files open, as many as can be had. `makeWay` is called whenever
   * one is to be given up: who holds files open that it does not use now is to close them.
   */
  fill(limit: number, makeWay: () => void): void {
    this.#makeWay = makeWay;
    this.#wanted = Math.min(MAX_SPARES, Math.floor(limit * SHARE_OF_LIMIT));
    this.replenish();
  }

  /** Calls `open` and gives up spares until it succeeds; throws what it throws when none helps. */
  spend<T>(open: () => T): T {
    this.#makeWay?.();
    for (;;) {
      const spare = this.#spares.pop();
      if (spare === undefined) return open();
      this.#files.close(spare);
      try {
        return open();
      } catch (error) {
        const { length } = this.#spares;
        this.replenish();
        // A spare that could be had again was not what was missing. Else another thread was faster.
        if (this.#spares.length > length) throw error;
      }
    }
  }

  /** Takes the spares that are missing, for as far as descriptors are free. */
  replenish(): void {
    try {
      while (this.isShort) this.#spares.push(this.#files.open());
    } catch {
      // Whoever closes the next file tries again.
    }
  }

  /** Gives all spares back. */
  release(): void {
    this.#wanted = 0;
    this.#makeWay = null;
    for (const spare of this.#spares.splice(0)) this.#files.close(spare);
  }
}
