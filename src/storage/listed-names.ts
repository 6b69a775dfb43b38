import { ALL_NAMES, partOf, type NameRange } from "../protocol/names/name-range.js";
import { shapeOf } from "../protocol/names/name-shape.js";
import { stopwatchMs } from "../ops/clock.js";
import { ShapeNames } from "./shape-names.js";
import { SortedNames } from "./sorted-names.js";
import type { MatchingNames } from "./storage.js";

/** Kinds of patterns that have an index, and how long one is kept for others that come: to fill it takes a while. */
const MAX_SHAPES = 64;
const MIN_KEPT_MS = 60_000;
/** What these indexes take in memory together. */
const MAX_SHAPE_BYTES = 64 * 1024 * 1024;
/** What had no room is tried again once there are so many times fewer names, or so many times as much room. */
const MUCH_LESS = 0.9;

/** The names of all streams in order, and those that patterns match, by the shapes of those asked for. */
export class ListedNames {
  #all: SortedNames;
  /** The one asked for most recently is last. */
  readonly #shapes = new Map<string, ShapeNames>();
  /** Those for which there was no room. */
  readonly #tooLarge = new Map<string, TooLarge>();
  readonly #maxShapeBytes: number;
  readonly #nowMs: () => number;

  /** Of names that are in order, each once, and no pieces of longer texts. */
  constructor(ordered: readonly string[], maxShapeBytes: number = MAX_SHAPE_BYTES, nowMs: () => number = stopwatchMs) {
    this.#all = SortedNames.of(ordered);
    this.#maxShapeBytes = maxShapeBytes;
    this.#nowMs = nowMs;
  }

  /** About what they take in memory, without the indexes. */
  get bytes(): number {
    return this.#all.bytes;
  }

  /** Adds a name; keeps a copy of it, as the text may be a piece of a longer one. */
  add(name: string): void {
    const own = Buffer.from(name).toString();
    this.#all.add(own);
    for (const shape of this.#shapes.values()) shape.note(own, true);
  }

  remove(name: string): void {
    this.#all.remove(name);
    for (const shape of this.#shapes.values()) shape.note(name, false);
  }

  /** Has these names from now on, which are as those of the constructor: what it knows of them already is kept. */
  become(ordered: readonly string[]): void {
    if (this.#shapes.size === 0) {
      this.#all = SortedNames.of(ordered);
      return;
    }
    let at = 0;
    for (const name of this.#all.slice(ALL_NAMES, Infinity)) {
      for (; at < ordered.length && (ordered[at] ?? "") < name; at += 1) this.add(ordered[at] ?? "");
      if (ordered[at] === name) at += 1;
      else this.remove(name);
    }
    for (const name of ordered.slice(at)) this.add(name);
  }

  /** The first names of a range in order, at most `count`. */
  slice(range: NameRange, count: number): string[] {
    return this.#all.slice(range, count);
  }

  /**
   * Those that these patterns match, `null` for all, once they are known; `null` where there are patterns of too many
   * kinds, or names that take too much memory.
   */
  async matching(patterns: readonly (string | null)[]): Promise<MatchingNames | null> {
    const shaped = new Map(patterns.flatMap((each) => (each === null ? [] : [[each, shapeOf(each)] as const])));
    const texts = new Set([...shaped.values()].map(({ shape }) => shape));
    if (texts.size > MAX_SHAPES) return null;
    const shapes = new Map<string, ShapeNames>();
    for (const text of texts) {
      const shape = this.#shapeOf(text);
      if (shape === null) return null;
      shapes.set(text, shape);
    }
    for (const shape of shapes.values()) await shape.current;
    return {
      slice: (source, range, count) => {
        const part = partOf(source, range);
        if (part === null) return [];
        if (source.pattern === null) return this.#all.slice(part, count);
        const { shape, key } = shaped.get(source.pattern) ?? shapeOf(source.pattern);
        return shapes.get(shape)?.slice(key, part, count) ?? null;
      },
    };
  }

  #shapeOf(text: string): ShapeNames | null {
    const known = this.#shapes.get(text);
    this.#shapes.delete(text);
    const shape = known?.isKept === true ? known : this.#begin(text);
    if (shape === null) return null;
    this.#shapes.set(text, shape);
    shape.askedAtMs = this.#nowMs();
    return shape;
  }

  /** `null` where there is no room for one more. */
  #begin(text: string): ShapeNames | null {
    const failed = this.#tooLarge.get(text);
    if (failed !== undefined && !this.#hasRoomFor(failed)) return null;
    if (this.#shapes.size >= MAX_SHAPES && !this.#dropOldest()) return null;
    this.#tooLarge.delete(text);
    return new ShapeNames(text, this.#all, () => this.#keepBounds());
  }

  /** Whether there was one that nobody has asked for of late. */
  #dropOldest(): boolean {
    for (const [text, shape] of this.#shapes) {
      if (this.#nowMs() - shape.askedAtMs < MIN_KEPT_MS) return false;
      shape.drop();
      this.#shapes.delete(text);
      return true;
    }
    return false;
  }

  #hasRoomFor({ bytes, ofNames }: TooLarge): boolean {
    const room = this.#maxShapeBytes - this.#shapeBytes();
    return bytes < room * MUCH_LESS || this.#all.size < ofNames * MUCH_LESS;
  }

  #shapeBytes(): number {
    let bytes = 0;
    for (const shape of this.#shapes.values()) bytes += shape.bytes;
    return bytes;
  }

  /** Gives up the largest until the others have room. */
  #keepBounds(): void {
    for (let bytes = this.#shapeBytes(); bytes > this.#maxShapeBytes;) {
      const [text, largest] = [...this.#shapes].reduce((one, other) => (one[1].bytes >= other[1].bytes ? one : other));
      bytes -= largest.bytes;
      this.#shapes.delete(text);
      if (this.#tooLarge.size >= MAX_SHAPES) this.#tooLarge.clear();
      this.#tooLarge.set(text, { bytes: largest.bytes, ofNames: this.#all.size });
      largest.drop();
    }
  }
}

/** How large an index had become, of how many names in all, when it was given up. */
interface TooLarge {
  readonly bytes: number;
  readonly ofNames: number;
}
