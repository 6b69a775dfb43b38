/**
 * Counts memory that several answers share only once: as much as the answers have together, and no more than there is.
 */
export class SharedBytes {
  /** The sum of the answers' lengths, by memory. */
  readonly #lengths = new Map<ArrayBufferLike, number>();

  /** How many bytes more count with an answer of `bytes` from `memory`; `null` is memory that nobody shares. */
  addedBy(memory: ArrayBufferLike | null, bytes: number): number {
    if (memory === null) return bytes;
    const length = this.#lengths.get(memory) ?? 0;
    return countOf(memory, length + bytes) - countOf(memory, length);
  }

  /** Adds an answer; returns what {@link addedBy} would have. */
  add(memory: ArrayBufferLike | null, bytes: number): number {
    const added = this.addedBy(memory, bytes);
    if (memory !== null) this.#lengths.set(memory, (this.#lengths.get(memory) ?? 0) + bytes);
    return added;
  }

  /** Removes an answer that was added; returns how many bytes fewer count. */
  remove(memory: ArrayBufferLike | null, bytes: number): number {
    if (memory === null) return bytes;
    const length = this.#lengths.get(memory) ?? 0;
    if (length > bytes) this.#lengths.set(memory, length - bytes);
    else this.#lengths.delete(memory);
    return countOf(memory, length) - countOf(memory, length - bytes);
  }

  /** An added answer's share of the bytes that count: an equal part for each byte. */
  chargeOf(memory: ArrayBufferLike | null, bytes: number): number {
    const length = memory === null ? undefined : this.#lengths.get(memory);
    return memory === null || length === undefined ? bytes : (bytes / length) * countOf(memory, length);
  }
}

function countOf(memory: ArrayBufferLike, length: number): number {
  return Math.min(length, memory.byteLength);
}
