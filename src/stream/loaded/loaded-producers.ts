/** A stream in memory, as its producers are counted. */
export interface CountedStream {
  /** Producers that it remembers, and how many of them are counted. */
  readonly producerCount: number;
  countedProducers: number;
}

/**
 * How many producers the streams in memory remember, all together. A stream's are never forgotten while it is in
 * memory, and are in its files when it leaves: to have fewer of them in memory, streams have to leave.
 */
export class LoadedProducers<S extends CountedStream> {
  /** Those that have producers, as they came. */
  readonly #streams = new Set<S>();
  #count = 0;

  /** Producers in memory. */
  get count(): number {
    return this.#count;
  }

  /** The streams that have some. */
  get streams(): ReadonlySet<S> {
    return this.#streams;
  }

  /** Counts the producers that a stream in memory has now. */
  note(stream: S): void {
    const { producerCount } = stream;
    if (producerCount === stream.countedProducers) return;
    if (stream.countedProducers === 0) this.#streams.add(stream);
    this.#count += producerCount - stream.countedProducers;
    stream.countedProducers = producerCount;
  }

  /** The stream has left memory. */
  forget(stream: S): void {
    if (!this.#streams.delete(stream)) return;
    this.#count -= stream.countedProducers;
    stream.countedProducers = 0;
  }
}
