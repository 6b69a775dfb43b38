// Goes through names that a caller may see, without a look at others where that can be had.

import { isOneName, justAfter, type NameRange, type NameSource } from "../../../protocol/names/name-range.js";
import type { StreamList } from "../../../stream/loaded/stream.js";
import { LIST_TURNS } from "./list-turns.js";

/** Names asked for at a time, and the least of each source where there are many. */
const BURST = 512;
const LEAST_OF_SOURCE = 8;
/** Of how many sources names are taken before others may have their turn. */
const SOURCES_PER_CLOCK = 16;

/** Some names in order, and where the next are; `null` where there are no more. */
interface Burst {
  readonly names: readonly string[];
  readonly next: string | null;
}

/** The next names of a range, from `from` on. `null` where its sources are not known without others. */
type NextNames = (from: string) => Promise<Burst | null>;

/**
 * The names of a range in order, a few at a time: those of its sources, and others too where the storage has no index
 * for them. Rejects as the storage does.
 */
export async function* visibleNames(
  list: Pick<StreamList, "names" | "matching">,
  range: NameRange,
): AsyncGenerator<readonly string[]> {
  const { sources, to } = range;
  // Whether there is such a stream is asked by who may see it alone.
  if (sources !== undefined && isOneName(range)) return yield [range.from];
  const ofSources = sources === undefined ? NO_SOURCES : await namesOfSources(list, sources, to);
  const ofAll = async (from: string): Promise<Burst> => {
    const names = await list.names({ from, to }, BURST);
    return { names, next: names.length < BURST ? null : afterLast(names) };
  };
  for (let from: string | null = range.from; from !== null;) {
    const { names, next }: Burst = (await ofSources(from)) ?? (await ofAll(from));
    yield names;
    from = next;
  }
}

const NO_SOURCES: NextNames = async () => null;

async function namesOfSources(
  list: Pick<StreamList, "matching">,
  sources: readonly NameSource[],
  to: string | null,
): Promise<NextNames> {
  const matching = await list.matching(sources.map(({ pattern }) => pattern));
  if (matching === null) return NO_SOURCES;
  const count = Math.max(LEAST_OF_SOURCE, Math.ceil(BURST / sources.length));
  return async (from) => {
    const found = new Set<string>();
    let end: string | null = null;
    for (const [at, source] of sources.entries()) {
      if (at > 0 && at % SOURCES_PER_CLOCK === 0 && LIST_TURNS.isSpent) await LIST_TURNS.next();
      const names = matching.slice(source, { from, to }, count);
      if (names === null) return null;
      for (const name of names) found.add(name);
      const last = names.length < count ? undefined : names.at(-1);
      if (last !== undefined && (end === null || last < end)) end = last;
    }
    // Behind the end of one that has more, the others may have names that come before its next.
    const names = [...found].filter((name) => end === null || name <= end).sort();
    return { names, next: end === null ? null : justAfter(end) };
  };
}

function afterLast(names: readonly string[]): string | null {
  const last = names.at(-1);
  return last === undefined ? null : justAfter(last);
}
