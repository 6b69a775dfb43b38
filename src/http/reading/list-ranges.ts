// Which parts of the list of names a page looks at.

/** Names in a row: those from `from` on that start with `beginning`. */
export interface NameRange {
  readonly from: string;
  readonly beginning: string;
}

/**
 * Where there can be names that start with `beginning` and with one of `beginnings`, after the name `after`: in order,
 * and none twice. What the caller may not see is not even looked at, so that the time says nothing of it.
 */
export function rangesOf(beginnings: readonly string[], beginning: string, after: string): readonly NameRange[] {
  const both = beginnings.flatMap((each) =>
    each.startsWith(beginning) ? [each] : beginning.startsWith(each) ? [beginning] : [],
  );
  const ranges: NameRange[] = [];
  for (const each of both.sort()) {
    const last = ranges.at(-1);
    if (last !== undefined && each.startsWith(last.beginning)) continue;
    // No name has this character: it is the first that is after `after`.
    const from = after < each ? each : `${after}\0`;
    ranges.push({ from, beginning: each });
  }
  return ranges.filter(({ from, beginning: each }) => from.startsWith(each));
}
