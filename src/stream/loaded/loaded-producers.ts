/** A stream in memory whose producers are counted. */
export interface CountedStream {
  /** How many producers it remembers, and how many of them have been counted. */
  readonly producerCount: number;
  countedProducers: number;
}

/**
 * Counts the producers that all streams in memory remember. A stream keeps its producers while it is in memory, and its
 * files have them when it is evicted: only eviction reduces the count.
 */
export class LoadedProducers<S extends CountedStream> {
  /** The streams that have producers, in the order in which they got the first. */
  readonly #streams = new Set<S>();
  #count = 0;

  /** Producers in memory. */
  get count(): number {
    return this.#count;
  }

  /** The streams that have producers. */
  get streams(): ReadonlySet<S> {
    return this.#streams;
  }

  /** Updates the count with the producers that a stream has now. */
  note(stream: S): void {
    const { producerCount } = stream;
    if (producerCount === stream.countedProducers) return;
    if (stream.countedProducers === 0) this.#streams.add(stream);
    this.#count += producerCount - stream.countedProducers;
    stream.countedProducers = producerCount;
  }

  /** Stops counting a stream, which is no longer in memory. */
  forget(stream: S): void {
    if (!this.#streams.delete(stream)) return;
    this.#count -= stream.countedProducers;
    stream.countedProducers = 0;
  }
}
