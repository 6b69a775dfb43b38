/** A segment of a pattern: its parts between asterisks, or any number of segments. */
type Segment = readonly string[] | "deep";

/**
 * A test of stream names: in `pattern`, `*` stands for one segment or a part of one, `**` for any number of segments,
 * or none; everything else stands for itself. It takes at most time in proportion to the lengths of both, multiplied.
 */
export function nameMatcher(pattern: string): (name: string) => boolean {
  if (!pattern.includes("*")) return (name) => name === pattern;
  const prefix = pattern.endsWith("/**") ? pattern.slice(0, -"**".length) : "*";
  if (!prefix.includes("*")) {
    const itself = prefix.slice(0, -1);
    return (name) => name.startsWith(prefix) || name === itself;
  }
  const inOne = pattern.slice(0, -1);
  // As most grants are written, and looked at for each request.
  if (pattern.endsWith("*") && !inOne.includes("*"))
    return (name) => name.startsWith(inOne) && !name.includes("/", inOne.length);
  const segments = pattern.split("/").map((part): Segment => (part === "**" ? "deep" : part.split(/\*+/)));
  return (name) => name === pattern || matchesAll(segments, name);
}

/**
 * Whether `segments` match all of `name`. Only the last `**` is tried with more: what an earlier one skips can't help.
 */
function matchesAll(segments: readonly Segment[], name: string): boolean {
  let next = 0;
  let afterDeep = -1;
  let deepEnd = 0;
  let start = 0;
  while (start <= name.length) {
    const segment = segments[next];
    if (segment === "deep") {
      afterDeep = ++next;
      deepEnd = start;
      continue;
    }
    const end = endOfSegment(name, start);
    if (segment !== undefined && matchesOne(segment, name.slice(start, end))) {
      start = end + 1;
      next++;
    } else if (afterDeep >= 0) {
      deepEnd = endOfSegment(name, deepEnd) + 1;
      start = deepEnd;
      next = afterDeep;
    } else return false;
  }
  while (segments[next] === "deep") next++;
  return next === segments.length;
}

function endOfSegment(name: string, start: number): number {
  const slash = name.indexOf("/", start);
  return slash < 0 ? name.length : slash;
}

/** Whether `text` begins with the first of `parts`, ends with the last, and has the others in order between. */
function matchesOne(parts: readonly string[], text: string): boolean {
  const first = parts[0] ?? "";
  if (parts.length === 1) return text === first;
  const last = parts.at(-1) ?? "";
  const end = text.length - last.length;
  if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  let from = first.length;
  for (let at = 1; at < parts.length - 1; at++) {
    const part = parts[at] ?? "";
    const found = text.indexOf(part, from);
    if (found < 0) return false;
    from = found + part.length;
  }
  return from <= end;
}
