/** Names that one line has room for. */
const MAX_NAMED = 10;

/** The names of streams, as a line says them. */
export function nameList(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  const named = names
    .slice(0, MAX_NAMED)
    .map((name) => JSON.stringify(name))
    .join(", ");
  return more > 0 ? `${named} and ${more} more` : named;
}
