/**
 * The word of `known` that `word` was probably meant to be: one that it begins, or else the nearest within one typing
 * mistake for every three letters; `null` when there is none.
 */
export function nearest(word: string, known: readonly string[]): string | null {
  const begun = word.length >= 3 ? known.find((candidate) => candidate.startsWith(word)) : undefined;
  if (begun !== undefined) return begun;
  const ranked = known
    .map((candidate) => ({ candidate, mistakes: typingMistakes(word, candidate) }))
    .sort((one, other) => one.mistakes - other.mistakes);
  const [best] = ranked;
  const limit = Math.max(1, Math.floor(word.length / 3));
  return best !== undefined && best.mistakes <= limit ? best.candidate : null;
}

/** How many letters must be added, dropped, replaced or swapped with their neighbour to turn `from` into `to`. */
function typingMistakes(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (isSame ? 0 : 1),
        isSwapped ? at(beforeLast, column - 2) + 1 : Infinity,
      );
    }
    beforeLast = last;
    last = current;
  }
  return at(last, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}
