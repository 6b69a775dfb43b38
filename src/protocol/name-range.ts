/** Names in a row, in the order of their UTF-16 code units: from `from` on, and before `to`, `null` for all. */
export interface NameRange {
  readonly from: string;
  readonly to: string | null;
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

/** Where the names are that a pattern matches: all of them, and as few others as two ranges allow. */
export function rangesOfPattern(pattern: string): readonly NameRange[] {
  const literal = pattern.split("*", 1)[0] ?? "";
  if (literal === pattern) return [onlyName(pattern)];
  const isDeep = literal.endsWith("/") && DEEP_ALONE.test(pattern.slice(literal.length));
  // `a/**` is also `a`.
  return [...(isDeep ? [onlyName(literal.slice(0, -1))] : []), namesBeginningWith(literal)];
}

/** What is in some of `some` and in some of `others`, from the name `from` on: in order, and none twice. */
export function commonRanges(
  some: readonly NameRange[],
  others: readonly NameRange[],
  from: string,
): readonly NameRange[] {
  const common = some.flatMap((one) => others.map((other) => overlap(overlap(one, other), { from, to: null })));
  const ranges: NameRange[] = [];
  for (const next of common.filter(isSome).sort((one, other) => (one.from < other.from ? -1 : 1))) {
    const last = ranges.at(-1);
    if (last === undefined || (last.to !== null && last.to < next.from)) ranges.push(next);
    else ranges[ranges.length - 1] = { from: last.from, to: later(last.to, next.to) };
  }
  return ranges;
}

function overlap(one: NameRange, other: NameRange): NameRange {
  const from = one.from > other.from ? one.from : other.from;
  const to = one.to === null || (other.to !== null && other.to < one.to) ? other.to : one.to;
  return { from, to };
}

function later(one: string | null, other: string | null): string | null {
  return one === null || other === null ? null : one > other ? one : other;
}

function isSome({ from, to }: NameRange): boolean {
  return to === null || from < to;
}
