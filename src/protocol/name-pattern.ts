/**
 * A test of stream names: in `pattern`, `*` stands for one segment or a part of one, `**` for any number of segments,
 * or none; everything else stands for itself.
 */
export function nameMatcher(pattern: string): (name: string) => boolean {
  let source = "";
  // What comes before the next segment: nothing at the start, and nothing after a part that includes its slash.
  let slash = "";
  for (const segment of pattern.split("/")) {
    if (segment === "**") {
      source += slash === "" ? "(?:[^/]+/)*" : "(?:/[^/]+)*";
      continue;
    }
    source += slash + segment.split(/\*+/).map(escaped).join("[^/]*");
    slash = "/";
  }
  // Only `**`: the last segment has no slash after it.
  if (slash === "") source += "[^/]+";
  const expression = new RegExp(`^${source}$`, "su");
  return (name) => name === pattern || expression.test(name);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
