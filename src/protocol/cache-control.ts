/** How long a cache may serve a read as fresh, and how long after that while it asks again, in seconds (specification 8). */
const FRESH_SECONDS = 60;
const STALE_SECONDS = 300;

const PUBLIC = `public, max-age=${FRESH_SECONDS}, stale-while-revalidate=${STALE_SECONDS}`;
const PRIVATE = `private, max-age=${FRESH_SECONDS}, stale-while-revalidate=${STALE_SECONDS}`;
const NO_STORE = "no-store";

/**
 * The `Cache-Control` of a catch-up read (specification 4.6). `remainingMs` is the stream's remaining lifetime in
 * milliseconds, `null` when it has no end: no cache serves the stream beyond it. Authenticated reads are private.
 */
export function readCacheControl(options: { readonly authenticated: boolean; readonly remainingMs: number | null }): string {
  const { authenticated, remainingMs } = options;
  if (remainingMs === null) return authenticated ? PRIVATE : PUBLIC;
  const remainingSeconds = Math.floor(remainingMs / 1000);
  if (remainingSeconds >= FRESH_SECONDS + STALE_SECONDS) return authenticated ? PRIVATE : PUBLIC;
  return remainingSeconds <= 0 ? NO_STORE : shortened(authenticated ? "private" : "public", remainingSeconds);
}

function shortened(scope: string, remainingSeconds: number): string {
  const fresh = Math.min(FRESH_SECONDS, remainingSeconds);
  const stale = Math.min(STALE_SECONDS, remainingSeconds - fresh);
  return stale === 0 ? `${scope}, max-age=${fresh}` : `${scope}, max-age=${fresh}, stale-while-revalidate=${stale}`;
}
