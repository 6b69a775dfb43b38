// Goes through names that a caller may see, without a look at others where that can be had.

import { isOneName, justAfter, partOf, type NameRange, type NameSource } from "../../../protocol/names/name-range.js";
import { TURN_OF_NAMES } from "../../../ops/turns.js";
import type { StreamList } from "../../../stream/loaded/stream.js";

type MatchingNames = NonNullable<Awaited<ReturnType<StreamList["matching"]>>>;

/** Names asked for at a time, and the least of each source where there are many. */
const BURST = 512;
const LEAST_OF_SOURCE = 8;

/** Some names in order, and where the next are; `null` where there are no more. */
interface Burst {
  readonly names: readonly string[];
  readonly next: string | null;
}

/**
 * The names of some ranges in order, a few at a time: those of their sources, and others too where the storage has no
 * index for them. Rejects as the storage does.
 */
export async function* visibleNames(
  list: Pick<StreamList, "names" | "matching">,
  ranges: readonly NameRange[],
): AsyncGenerator<readonly string[]> {
  // Many ranges may have the same sources.
  const sources = new Set(ranges.map((range) => range.sources ?? []));
  const patterns = new Set([...sources].flatMap((some) => some.map(({ pattern }) => pattern)));
  const matching = patterns.size === 0 ? null : await list.matching([...patterns]);
  for (const range of ranges) yield* namesIn(list, matching, range);
}

async function* namesIn(
  list: Pick<StreamList, "names">,
  matching: MatchingNames | null,
  range: NameRange,
): AsyncGenerator<readonly string[]> {
  // Whether there is such a stream is asked by who may see it alone.
  if (range.sources !== undefined && isOneName(range)) return yield [range.from];
  const sources = matching === null ? [] : await sourcesIn(range);
  for (let from: string | null = range.from; from !== null;) {
    const rest: NameRange = { from, to: range.to };
    const found: Burst | null = matching === null ? null : await burstOfSources(matching, sources, rest);
    const { names, next }: Burst = found ?? (await burstOfAll(list, rest));
    yield names;
    from = next;
  }
}

async function sourcesIn(range: NameRange): Promise<readonly NameSource[]> {
  const { sources = [{ range, pattern: null }] } = range;
  const found: NameSource[] = [];
  for (const source of sources) {
    if (TURN_OF_NAMES.isSpent) await TURN_OF_NAMES.next();
    if (partOf(source, range) !== null) found.push(source);
  }
  return found;
}

async function burstOfAll(list: Pick<StreamList, "names">, range: NameRange): Promise<Burst> {
  const names = await list.names(range, BURST);
  const last = names.length < BURST ? undefined : names.at(-1);
  return { names, next: last === undefined ? null : justAfter(last) };
}

/** `null` once they are not known without others. */
async function burstOfSources(
  matching: MatchingNames,
  sources: readonly NameSource[],
  range: NameRange,
): Promise<Burst | null> {
  const count = Math.max(LEAST_OF_SOURCE, Math.ceil(BURST / sources.length));
  const found = new Set<string>();
  let end: string | null = null;
  for (const source of sources) {
    if (TURN_OF_NAMES.isSpent) await TURN_OF_NAMES.next();
    const names = matching.slice(source, range, count);
    if (names === null) return null;
    for (const name of names) found.add(name);
    const last = names.length < count ? undefined : names.at(-1);
    if (last !== undefined && (end === null || last < end)) end = last;
  }
  // Behind the end of one that has more, the others may have names that come before its next.
  const names = [...found].filter((name) => end === null || name <= end).sort();
  return { names, next: end === null ? null : justAfter(end) };
}
