/** Counts the turns of the event loop from now on. */
export class TurnCount {
  turns = 0;
  #immediate = setImmediate(() => this.#count());

  #count(): void {
    this.turns += 1;
    this.#immediate = setImmediate(() => this.#count());
  }

  /** Counts no more: else the process would not end. */
  stop(): void {
    clearImmediate(this.#immediate);
  }
}
