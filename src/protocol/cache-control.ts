// The `Cache-Control` of reads.

/** How many times longer than it is fresh a cache may serve a read while it revalidates (docs/api.md, Read). */
const STALE_FACTOR = 5;

const NO_STORE = "no-store";

/** How long caches may serve catch-up reads (docs/api.md, Read). */
export class ReadFreshness {
  readonly #freshSeconds: number;
  readonly #staleSeconds: number;
  readonly #public: string;
  readonly #private: string;

  /** `maxAgeMs` is how long a cache may serve a read without asking; below a second it asks each time. */
  constructor(maxAgeMs: number) {
    this.#freshSeconds = Math.floor(maxAgeMs / 1000);
    this.#staleSeconds = this.#freshSeconds * STALE_FACTOR;
    this.#public = this.#within("public", Infinity);
    this.#private = this.#within("private", Infinity);
  }

  /**
   * The `Cache-Control` of a read. No cache serves it beyond `remainingMs`, which is `null` for a stream without an
   * end. Authenticated reads are private.
   */
  cacheControl(authenticated: boolean, remainingMs: number | null): string {
    if (remainingMs === null) return authenticated ? this.#private : this.#public;
    const remainingSeconds = Math.floor(remainingMs / 1000);
    return remainingSeconds <= 0 ? NO_STORE : this.#within(authenticated ? "private" : "public", remainingSeconds);
  }

  #within(scope: string, remainingSeconds: number): string {
    if (this.#freshSeconds === 0) return `${scope}, max-age=0, must-revalidate`;
    const fresh = Math.min(this.#freshSeconds, remainingSeconds);
    const stale = Math.min(this.#staleSeconds, remainingSeconds - fresh);
    return stale === 0 ? `${scope}, max-age=${fresh}` : `${scope}, max-age=${fresh}, stale-while-revalidate=${stale}`;
  }
}
