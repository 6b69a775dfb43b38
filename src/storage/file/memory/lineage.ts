import type { Position } from "../../storage.js";

/** A stream, as far as its forks ask. */
interface Source<T> {
  readonly lineage: Lineage<T>;
}

/** Bytes of a stream that are in another stream's files: from `from` up to `to`. */
export interface InheritedRange<T> {
  readonly owner: T;
  readonly from: Position;
  readonly to: Position;
}

/**
 * Where the bytes are that a stream shares with those it was forked from: ranges that follow each other from 0 to the
 * fork point, each with the stream whose own they are. However long the chain, a position is found in one search.
 */
export class Lineage<T> {
  readonly ranges: readonly InheritedRange<T>[];
  /** The fork point. */
  readonly end: Position;

  /** Without ranges: that of a stream which was not forked. */
  constructor(ranges: readonly InheritedRange<T>[] = []) {
    this.ranges = ranges;
    this.end = ranges.at(-1)?.to ?? 0;
  }

  /** That of a stream which shares what `parent` has before `point`. */
  static of<T extends Source<T>>(parent: T, point: Position): Lineage<T> {
    const inherited = parent.lineage.ranges
      .filter(({ from }) => from < point)
      .map((range) => ({ ...range, to: Math.min(range.to, point) }));
    const own = parent.lineage.end;
    return new Lineage(point > own ? [...inherited, { owner: parent, from: own, to: point }] : inherited);
  }

  /** The range with the byte at `position`, which is before the end. */
  at(position: Position): InheritedRange<T> {
    let low = 0;
    let high = this.ranges.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.ranges[middle]?.from ?? 0) <= position) low = middle;
      else high = middle - 1;
    }
    const found = this.ranges[low];
    if (found === undefined || position < found.from || position >= found.to)
      throw new RangeError(`position ${position} is not inherited`);
    return found;
  }
}
