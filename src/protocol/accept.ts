// Reads `Accept`.

/** A range of media types in an `Accept` header. */
interface MediaRange {
  readonly range: string;
  readonly quality: number;
}

const RANGE = /^\s*([^\s;]+)\s*(?:;.*?\bq\s*=\s*([^\s;]*))?/i;

/**
 * The one of `offers`, media types in lower case, that an `Accept` header asks for (RFC 9110, 12.5.1): by quality;
 * among equals the one named first; the first offer where it names none or accepts none.
 */
export function preferredType<Offer extends string>(
  accept: string | undefined,
  offers: readonly [Offer, ...Offer[]],
): Offer {
  const ranges = (accept ?? "").split(",").map(rangeOf);
  const ranked = offers.map((offer) => ({ offer, ...rankOf(offer, ranges) }));
  return ranked.reduce((best, next) =>
    next.quality > best.quality || (next.quality === best.quality && next.place < best.place) ? next : best,
  ).offer;
}

function rangeOf(text: string): MediaRange {
  const [, range = "", quality = "1"] = RANGE.exec(text) ?? [];
  return { range: range.toLowerCase(), quality: Number(quality) || 0 };
}

/** A type's quality and place in the header; one that only a wild card matches comes after the named ones. */
function rankOf(offer: string, ranges: readonly MediaRange[]): { readonly quality: number; readonly place: number } {
  const wildCards = [`${offer.slice(0, offer.indexOf("/"))}/*`, "*/*"];
  const place = ranges.findIndex(({ range }) => range === offer);
  const wild = wildCards.map((card) => ranges.find(({ range }) => range === card)).find((found) => found !== undefined);
  const meant = place === -1 ? wild : ranges[place];
  return { quality: meant?.quality ?? 0, place: place === -1 ? ranges.length : place };
}
