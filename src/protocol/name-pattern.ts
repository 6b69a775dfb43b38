/**
 * A test of stream names: in `pattern`, `*` stands for one segment or a part of one, `**` for any number of segments,
 * also none; all else stands for itself.
 */
export function nameMatcher(pattern: string): (name: string) => boolean {
  let source = "";
  // What is due before the next segment: nothing at the start, and nothing behind what took its slash along.
  let slash = "";
  for (const segment of pattern.split("/")) {
    if (segment === "**") {
      source += slash === "" ? "(?:[^/]+/)*" : "(?:/[^/]+)*";
      continue;
    }
    source += slash + segment.split(/\*+/).map(escaped).join("[^/]*");
    slash = "/";
  }
  // Nothing but `**`: the last segment has no slash behind it.
  if (slash === "") source += "[^/]+";
  const expression = new RegExp(`^${source}$`, "su");
  return (name) => name === pattern || expression.test(name);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
