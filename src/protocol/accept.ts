// Reads `Accept` and `Accept-Encoding`.

/** A range of media types, or a coding, and how much it is wanted. */
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

/**
 * Whether an `Accept-Encoding` header asks for gzip (RFC 9110, 12.5.3): by name or with `*`, and no less than for no
 * coding. An absent one, `null`, asks for nothing.
 */
export function acceptsGzip(acceptEncoding: string | null): boolean {
  if (acceptEncoding === null) return false;
  const codings = acceptEncoding.split(",").map(rangeOf);
  const qualityOf = (...names: string[]): number | undefined =>
    codings.find(({ range }) => names.includes(range))?.quality;
  const quality = qualityOf("gzip", "x-gzip") ?? qualityOf("*") ?? 0;
  return quality > 0 && quality >= (qualityOf("identity") ?? 0);
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
