import { ALL_NAMES, justAfter, partOf, type NameRange } from "../protocol/names/name-range.js";
import { keyInShape, shapeOf } from "../protocol/names/name-shape.js";
import { SortedNames } from "./sorted-names.js";
import type { MatchingNames } from "./storage.js";

/** Shapes of patterns that have an index; the one asked for least recently goes. */
const MAX_SHAPES = 64;
/** What these indexes take in memory together. */
const MAX_SHAPE_BYTES = 64 * 1024 * 1024;
/** Names put into an index in one turn of the event loop. */
const BURST = 512;

/** The names of all streams in order, and those that patterns match, by the shapes of those asked for. */
export class ListedNames {
  readonly #all: SortedNames;
  /** The one asked for most recently is last. */
  readonly #shapes = new Map<string, ShapeNames>();
  readonly #maxShapeBytes: number;

  /** Of names that are in order, each once, and no pieces of longer texts. */
  constructor(ordered: readonly string[], maxShapeBytes: number = MAX_SHAPE_BYTES) {
    this.#all = SortedNames.of(ordered);
    this.#maxShapeBytes = maxShapeBytes;
  }

  /** About what they take in memory, without the indexes. */
  get bytes(): number {
    return this.#all.bytes;
  }

  /** Adds a name; keeps a copy of it, as the text may be a piece of a longer one. */
  add(name: string): void {
    const own = copyOf(name);
    this.#all.add(own);
    for (const shape of this.#shapes.values()) shape.add(own);
    this.#keepBounds();
  }

  remove(name: string): void {
    this.#all.remove(name);
    for (const shape of this.#shapes.values()) shape.remove(name);
  }

  /** The first names of a range in order, at most `count`. */
  slice(range: NameRange, count: number): string[] {
    return this.#all.slice(range, count);
  }

  /** Those that these patterns match, `null` for all, once they are known; `null` for patterns of too many kinds. */
  async matching(patterns: readonly (string | null)[]): Promise<MatchingNames | null> {
    const shaped = new Map(patterns.flatMap((each) => (each === null ? [] : [[each, shapeOf(each)] as const])));
    const texts = new Set([...shaped.values()].map(({ shape }) => shape));
    if (texts.size > MAX_SHAPES) return null;
    const shapes = new Map([...texts].map((text) => [text, this.#shapeOf(text)]));
    await Promise.all([...shapes.values()].map((shape) => shape.filled));
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

  #shapeOf(text: string): ShapeNames {
    const shape = this.#shapes.get(text) ?? this.#begin(text);
    this.#shapes.delete(text);
    this.#shapes.set(text, shape);
    return shape;
  }

  #begin(text: string): ShapeNames {
    const oldest = this.#shapes.size < MAX_SHAPES ? undefined : this.#shapes.entries().next().value;
    if (oldest !== undefined) {
      this.#shapes.delete(oldest[0]);
      oldest[1].drop();
    }
    return new ShapeNames(text, (shape) => this.#fill(shape));
  }

  /** What is added or removed meanwhile, is so in both. */
  async #fill(shape: ShapeNames): Promise<void> {
    for (let range = ALL_NAMES; shape.isKept;) {
      const names = this.#all.slice(range, BURST);
      for (const name of names) shape.add(name);
      this.#keepBounds();
      const last = names.at(-1);
      if (last === undefined || names.length < BURST) return;
      range = { from: justAfter(last), to: null };
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  /** What has no room is not made again and again: it stays, empty, until it is the one asked for least recently. */
  #keepBounds(): void {
    let bytes = 0;
    for (const shape of this.#shapes.values()) bytes += shape.bytes;
    for (const shape of this.#shapes.values()) {
      if (bytes <= this.#maxShapeBytes) return;
      bytes -= shape.bytes;
      shape.drop();
    }
  }
}

/** The names that match the patterns of one shape. */
class ShapeNames {
  readonly #keyOf: (name: string) => string | null;
  /** Each behind its key and a character that no name has; `null` when there is no room. */
  #names: SortedNames | null = new SortedNames();
  /** When it has all names; it never rejects. */
  readonly filled: Promise<void>;

  constructor(shape: string, fill: (names: ShapeNames) => Promise<void>) {
    this.#keyOf = keyInShape(shape);
    this.filled = fill(this);
  }

  /** Whether there is room for them. */
  get isKept(): boolean {
    return this.#names !== null;
  }

  get bytes(): number {
    return this.#names?.bytes ?? 0;
  }

  drop(): void {
    this.#names = null;
  }

  add(name: string): void {
    const key = this.#names === null ? null : this.#keyOf(name);
    if (key !== null) this.#names?.add(key === "" ? name : copyOf(behind(key, name)));
  }

  remove(name: string): void {
    const key = this.#names === null ? null : this.#keyOf(name);
    if (key !== null) this.#names?.remove(behind(key, name));
  }

  /** The first names with `key` of a range in order, at most `count`; `null` when there was no room for them. */
  slice(key: string, { from, to }: NameRange, count: number): readonly string[] | null {
    if (key === "" || this.#names === null) return this.#names?.slice({ from, to }, count) ?? null;
    const last = to === null ? `${key}${AFTER_KEY}` : behind(key, to);
    return this.#names.slice({ from: behind(key, from), to: last }, count).map((name) => name.slice(key.length + 1));
  }
}

const BEHIND_KEY = "\0";
/** The character after it. */
const AFTER_KEY = "\x01";

function behind(key: string, name: string): string {
  return key === "" ? name : `${key}${BEHIND_KEY}${name}`;
}

function copyOf(text: string): string {
  return Buffer.from(text).toString();
}
