// The cursors of live reads, by which caches tell one request from the next.

/** The instant that cursors count from: 2024-10-09T00:00:00Z (docs/api.md, Wait for more), in Unix milliseconds. */
export const CURSOR_EPOCH_MS = Date.UTC(2024, 9, 9);

/** Length of one cursor interval, in milliseconds. */
export const CURSOR_INTERVAL_MS = 20_000;

/** The most that one answer moves a cursor ahead of the client's. */
const MAX_JITTER_MS = 3_600_000;
const MAX_JITTER_INTERVALS = MAX_JITTER_MS / CURSOR_INTERVAL_MS;

/** Digits beyond this make a cursor malformed, so that an answer stays short. */
const MAX_CURSOR_DIGITS = 40;

/**
 * The cursor for a live answer (docs/api.md, Wait for more): the number of whole intervals up to `nowMs`, or, when the
 * client's cursor is not smaller than that, the client's moved ahead by 1 to 3600 s of jitter in whole intervals, at
 * least one. `random` gives numbers in [0, 1). A client's cursor that is not 1 to 40 digits counts as absent.
 */
export function nextCursor(nowMs: number, clientCursor: string | null, random: () => number): string {
  const current = Math.max(0, Math.floor((nowMs - CURSOR_EPOCH_MS) / CURSOR_INTERVAL_MS));
  if (clientCursor === null || !isCursor(clientCursor)) return String(current);
  const client = Number(clientCursor);
  if (client < current) return String(current);
  const jitter = 1 + Math.floor(random() * MAX_JITTER_INTERVALS);
  // Past 2^53-1 a number can't tell neighbours apart: there the sum might equal the client's cursor.
  const isExact = client <= Number.MAX_SAFE_INTEGER - MAX_JITTER_INTERVALS;
  return isExact ? String(client + jitter) : String(BigInt(clientCursor) + BigInt(jitter));
}

/**
 * The cursor for answers that are sent together and leave their clients at the same place. It is ahead of each of
 * `clientCursors` and the same for all, so that from then on their requests are equal and a cache in between asks once
 * for all of them. `null` is a client without a cursor. A cursor beyond 2^53-1 does not count: its client gets its own
 * from {@link nextCursor}, as {@link isGreaterCursor} finds.
 */
export function commonCursor(nowMs: number, clientCursors: Iterable<string | null>, random: () => number): string {
  let furthest = -1;
  for (const text of clientCursors) {
    if (text === null || !isCursor(text)) continue;
    const cursor = Number(text);
    if (cursor > furthest && Number.isSafeInteger(cursor)) furthest = cursor;
  }
  return nextCursor(nowMs, furthest < 0 ? null : String(furthest), random);
}

/** Whether the cursor `a` is greater than `b`; both are plain decimals without leading zeros, of any length. */
export function isGreaterCursor(a: string, b: string): boolean {
  return a.length === b.length ? a > b : a.length > b.length;
}

function isCursor(text: string): boolean {
  if (text.length === 0 || text.length > MAX_CURSOR_DIGITS) return false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return false;
  }
  return true;
}
