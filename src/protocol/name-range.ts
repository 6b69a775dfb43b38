/** Names in a row, in the order of their UTF-16 code units: from `from` on, and before `to`, `null` for all. */
export interface NameRange {
  readonly from: string;
  readonly to: string | null;
  /** Of a pattern: it may have names that the pattern does not match. */
  readonly hasOthers?: true;
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

/** Where the names are that a pattern matches: all of them, and as few others as two ranges allow (`hasOthers`). */
export function rangesOfPattern(pattern: string): readonly NameRange[] {
  const literal = pattern.split("*", 1)[0] ?? "";
  if (literal === pattern) return [onlyName(pattern)];
  const isDeep = (literal === "" || literal.endsWith("/")) && DEEP_ALONE.test(pattern.slice(literal.length));
  const begun = namesBeginningWith(literal);
  if (!isDeep) return [{ ...begun, hasOthers: true }];
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
  for (const next of [...ranges].sort((one, other) => (one.from < other.from ? -1 : 1))) {
    const last = all.at(-1);
    if (last === undefined || (last.to !== null && last.to < next.from)) all.push(next);
    else all[all.length - 1] = joined(last, next);
  }
  return all;
}

/** Both as one: `next` begins in `last`, or where that ends. */
function joined(last: NameRange, next: NameRange): NameRange {
  if (last.hasOthers !== true && !endsBefore(last, next)) return last;
  if (next.hasOthers !== true && next.from === last.from && !endsBefore(next, last)) return next;
  return { from: last.from, to: endsBefore(last, next) ? next.to : last.to, ...othersOf(last, next) };
}

function overlap(one: NameRange, other: NameRange): NameRange {
  const from = one.from > other.from ? one.from : other.from;
  return { from, to: endsBefore(one, other) ? one.to : other.to, ...othersOf(one, other) };
}

function othersOf(one: NameRange, other: NameRange): Pick<NameRange, "hasOthers"> {
  return one.hasOthers === true || other.hasOthers === true ? { hasOthers: true } : {};
}

function endsBefore(one: NameRange, other: NameRange): boolean {
  return one.to !== null && (other.to === null || one.to < other.to);
}

function isSome({ from, to }: NameRange): boolean {
  return to === null || from < to;
}
