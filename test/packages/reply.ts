/** A model's reply in chunks, which come when the test lets them come. */
export class Reply<Chunk> implements AsyncIterable<Chunk> {
  readonly chunks: readonly Chunk[];
  #released = 0;
  #wake = (): void => {};

  constructor(chunks: readonly Chunk[]) {
    this.chunks = chunks;
  }

  /** Lets the chunks up to `end`, which is not among them, be written. */
  releaseTo(end: number): void {
    this.#released = end;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void, undefined> {
    for (const [index, chunk] of this.chunks.entries()) {
      while (this.#released <= index) await new Promise<void>((resolve) => (this.#wake = resolve));
      yield chunk;
    }
  }
}
