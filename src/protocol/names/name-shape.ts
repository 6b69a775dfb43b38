// Tells what patterns of names have in common, so that one index has the names of many of them.

import { nameMatcher } from "./name-pattern.js";

/** Stands in a shape for a literal segment; no pattern and no name has this character. */
const HOLE = "\0";

/** A pattern as a shape and what fills it. */
export interface ShapedPattern {
  /** The pattern without its literal segments, but for those between two `**`. */
  readonly shape: string;
  /** The literal segments behind the first asterisk that the shape lacks. */
  readonly key: string;
}

/**
 * Takes a pattern with an asterisk apart. It matches exactly the names of its range (`rangesOfPattern`) that have its
 * key in its shape.
 */
export function shapeOf(pattern: string): ShapedPattern {
  const segments = pattern.split("/");
  const first = segments.findIndex((segment) => segment.includes("*"));
  const firstDeep = segments.indexOf("**");
  const lastDeep = segments.lastIndexOf("**");
  const key: string[] = [];
  const shape = segments.map((segment, at) => {
    // The range sees to the beginning of the first.
    if (at === first) return /^[^*]+\*+$/.test(segment) ? "*" : segment;
    if (segment.includes("*") || (at > firstDeep && at < lastDeep)) return segment;
    if (at > first) key.push(segment);
    return HOLE;
  });
  return { shape: shape.join("/"), key: key.join("/") };
}

/** What tells the key of a name in `shape`; `null` where no pattern of this shape matches it. */
export function keyInShape(shape: string): (name: string) => string | null {
  const segments = shape.split("/");
  const matches = nameMatcher(segments.map((segment) => (segment === HOLE ? "*" : segment)).join("/"));
  const first = segments.findIndex((segment) => segment.includes("*"));
  const lastDeep = segments.lastIndexOf("**");
  // Behind `**` they count from the end, as in the shape, so in the name.
  const places = segments.flatMap((segment, at) => {
    if (segment !== HOLE || at < first) return [];
    return lastDeep >= 0 && at > lastDeep ? at - segments.length : at;
  });
  if (places.length === 0) return (name) => (matches(name) ? "" : null);
  return (name) => {
    if (!matches(name)) return null;
    const found = name.split("/");
    return places.map((at) => found.at(at) ?? "").join("/");
  };
}
