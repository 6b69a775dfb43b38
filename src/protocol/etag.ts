/**
 * Where an answer ends: at the tail, at the final offset of a closed stream, or before either. A cache keeps headers
 * that a 304 leaves out (RFC 9111, 3.2): what was up to date once would stay so with the same tag.
 */
export type AnswerEnd = "tail" | "closed" | "before";

const ENDINGS: Readonly<Record<AnswerEnd, string>> = { tail: "", closed: ":closed", before: ":more" };

/**
 * The ETag of the bytes between two offsets of the stream whose internal id is `id` (docs/api.md, Read), with its
 * double quotes.
 */
export function formatEtag(id: string, startOffset: string, endOffset: string, end: AnswerEnd): string {
  return `"${id}:${startOffset}:${endOffset}${ENDINGS[end]}"`;
}

/** The ETag of the same bytes under a coding, which are other bytes (RFC 9110, 8.8.3.3). */
export function codedEtag(etag: string, coding: string): string {
  return `${etag.slice(0, -1)}:${coding}"`;
}

/**
 * Whether an `If-None-Match` header names `etag` (docs/api.md, Read; RFC 9110, 13.1.2): `*`, or a list of quoted tags,
 * compared weakly, so that `W/` makes no difference. Ignores list members that are not quoted tags.
 */
export function etagMatches(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === etag) return true;
  if (ifNoneMatch.trim() === "*") return true;
  let at = 0;
  while (at < ifNoneMatch.length) {
    at = skipSeparators(ifNoneMatch, at);
    if (ifNoneMatch.startsWith("W/", at)) at += 2;
    const end = endOfMember(ifNoneMatch, at);
    if (end - at === etag.length && ifNoneMatch.startsWith(etag, at)) return true;
    // After a member only a comma can begin another one: `"a""b"` is not two tags.
    const comma = ifNoneMatch.indexOf(",", end);
    at = comma === -1 ? ifNoneMatch.length : comma;
  }
  return false;
}

function skipSeparators(text: string, start: number): number {
  let at = start;
  while (at < text.length && isSeparator(text.charCodeAt(at))) at++;
  return at;
}

function isSeparator(code: number): boolean {
  return code === 0x2c || code === 0x20 || code === 0x09;
}

/** Where the quoted tag at `start` ends, past its closing quote: it may hold commas. `start` if none begins there. */
function endOfMember(text: string, start: number): number {
  if (text.charCodeAt(start) !== 0x22) return start;
  const quote = text.indexOf('"', start + 1);
  return quote === -1 ? text.length : quote + 1;
}
