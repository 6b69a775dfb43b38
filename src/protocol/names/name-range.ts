/** Names in a row, in the order of their UTF-16 code units: from `from` on, and before `to`, `null` for all. */
export interface NameRange {
  readonly from: string;
  readonly to: string | null;
  /** What is meant of them: absent where that is all. */
  readonly sources?: readonly NameSource[];
}

/** Some names of a row: those that `pattern` matches, or all for `null`. */
export interface NameSource {
  readonly range: NameRange;
  readonly pattern: string | null;
}

/** The rest of a pattern that stands for no segment, too. */
const DEEP_ALONE = /^\*\*(\/\*\*)*$/;

/** Every name. */
export const ALL_NAMES: NameRange = { from: "", to: null };

/** The names that start with `beginning`. */
export function namesBeginningWith(beginning: string): NameRange {
  let last = beginning.length - 1;
  // Nothing comes after this unit.
  while (beginning.charCodeAt(last) === 0xffff) last -= 1;
  const next = String.fromCharCode(beginning.charCodeAt(last) + 1);
  return { from: beginning, to: last < 0 ? null : `${beginning.slice(0, last)}${next}` };
}

/** One name. */
export function onlyName(name: string): NameRange {
  return { from: name, to: justAfter(name) };
}

/** Before all names that come after `name`, as no name has this character. */
export function justAfter(name: string): string {
  return `${name}\0`;
}

/** Where the names are that a pattern matches, in at most two ranges. Where these have others too, they say so. */
export function rangesOfPattern(pattern: string): readonly NameRange[] {
  const literal = pattern.split("*", 1)[0] ?? "";
  if (literal === pattern) return [onlyName(pattern)];
  const isDeep = (literal === "" || literal.endsWith("/")) && DEEP_ALONE.test(pattern.slice(literal.length));
  const begun = namesBeginningWith(literal);
  if (!isDeep) return [{ ...begun, sources: [{ range: begun, pattern }] }];
  // `a/**` is also `a`.
  return literal === "" ? [begun] : [onlyName(literal.slice(0, -1)), begun];
}

/**
 * What is in some of `some` and in some of `others`, from the name `from` on: in order, and none twice. Each is put in
 * order first: a credential may have thousands, and each with each would take long.
 */
export function commonRanges(
  some: readonly NameRange[],
  others: readonly NameRange[],
  from: string,
): readonly NameRange[] {
  const [ours, theirs] = [united(some), united(others)];
  const common: NameRange[] = [];
  for (let at = 0, other = 0; ;) {
    const [one, two] = [ours[at], theirs[other]];
    if (one === undefined || two === undefined) return common;
    const both = overlap(overlap(one, two), { from, to: null });
    if (isSome(both)) common.push(both);
    if (endsBefore(one, two)) at += 1;
    else other += 1;
  }
}

/** The same names in order, with a gap between each range and the next. */
function united(ranges: readonly NameRange[]): readonly NameRange[] {
  const all: NameRange[] = [];
  let union: Union | null = null;
  for (const next of [...ranges].sort((one, other) => (one.from < other.from ? -1 : 1))) {
    const last = all.at(-1);
    if (last === undefined || (last.to !== null && last.to < next.from)) {
      all.push(next);
      union = null;
    } else {
      // Most stand alone, and are not copied.
      union ??= unionOf(last);
      join(union, next);
      all[all.length - 1] = union;
    }
  }
  return all;
}

/** Some ranges as one, while more are put to it. */
interface Union extends NameRange {
  to: string | null;
  sources?: NameSource[];
}

function unionOf({ from, to, sources }: NameRange): Union {
  return sources === undefined ? { from, to } : { from, to, sources: [...sources] };
}

/** Puts `next` to `last`: it begins in it, or where that ends. */
function join(last: Union, next: NameRange): void {
  if (last.sources === undefined && !endsBefore(last, next)) return;
  if (next.sources === undefined && next.from === last.from && !endsBefore(next, last)) delete last.sources;
  else if (last.sources !== undefined || next.sources !== undefined)
    (last.sources ??= [wholeOf(last)]).push(...(next.sources ?? [wholeOf(next)]));
  if (endsBefore(last, next)) last.to = next.to;
}

function wholeOf({ from, to }: NameRange): NameSource {
  return { range: { from, to }, pattern: null };
}

/**
 * What is in both, with the sources of either, of which some may have nothing in it. Where both have sources, it has
 * those of `one`: so perhaps more than what is meant by both.
 */
function overlap(one: NameRange, other: NameRange): NameRange {
  const sources = one.sources ?? other.sources;
  return { ...boundsOf(one, other), ...(sources === undefined ? {} : { sources }) };
}

/** Whether a range has room for no more than the name `from`. */
export function isOneName({ from, to }: NameRange): boolean {
  return to === justAfter(from);
}

function boundsOf(one: NameRange, other: NameRange): NameRange {
  return { from: one.from > other.from ? one.from : other.from, to: endsBefore(one, other) ? one.to : other.to };
}

/** The part of `range` that is in `source`'s, `null` where there is none. */
export function partOf(source: NameSource, range: NameRange): NameRange | null {
  const part = boundsOf(source.range, range);
  return isSome(part) ? part : null;
}

function endsBefore(one: NameRange, other: NameRange): boolean {
  return one.to !== null && (other.to === null || one.to < other.to);
}

function isSome({ from, to }: NameRange): boolean {
  return to === null || from < to;
}
