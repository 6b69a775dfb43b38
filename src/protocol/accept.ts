/** A range of media types that a client takes, as `Accept` has it. */
interface MediaRange {
  readonly range: string;
  readonly quality: number;
}

const RANGE = /^\s*([^\s;]+)\s*(?:;.*?\bq\s*=\s*([^\s;]*))?/i;

/**
 * The one of `offers`, media types in lower case, that an `Accept` header asks for (RFC 9110, 12.5.1): by quality,
 * among equals the one that it names first, and the first of all where it names none or takes none.
 */
export function preferredType<Offer extends string>(accept: string | undefined, offers: readonly [Offer, ...Offer[]]): Offer {
  const ranges = (accept ?? "").split(",").map(rangeOf);
  const ranked = offers.map((offer) => ({ offer, ...rankOf(offer, ranges) }));
  return ranked.reduce((best, next) => (next.quality > best.quality || (next.quality === best.quality && next.place < best.place) ? next : best)).offer;
}

function rangeOf(text: string): MediaRange {
  const [, range = "", quality = "1"] = RANGE.exec(text) ?? [];
  return { range: range.toLowerCase(), quality: Number(quality) || 0 };
}

/** How much a type is wanted, and where it is named; all that only a wild card takes stand behind what is named. */
function rankOf(offer: string, ranges: readonly MediaRange[]): { readonly quality: number; readonly place: number } {
  const wildCards = [`${offer.slice(0, offer.indexOf("/"))}/*`, "*/*"];
  const place = ranges.findIndex(({ range }) => range === offer);
  const wild = wildCards.map((card) => ranges.find(({ range }) => range === card)).find((found) => found !== undefined);
  const meant = place === -1 ? wild : ranges[place];
  return { quality: meant?.quality ?? 0, place: place === -1 ? ranges.length : place };
}
