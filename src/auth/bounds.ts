/** Bounds of the auth file, each with its row in docs/auth.md. */
export const AUTH_BOUNDS = {
  /** Bytes of the file. */
  fileBytes: 1024 * 1024,
  tokens: 10_000,
  issuers: 100,
  ticketKeys: 100,
  revocations: 10_000,
  /** Grants of one owner. */
  grants: 100,
  /** Patterns in one grant. */
  patterns: 100,
  /** Characters of an `iss`, `aud`, `jti`, URL or path. */
  textChars: 1024,
  /** Bytes of a CA file. */
  caBytes: 256 * 1024,
} as const;

/** What is remembered of requests at most: of headers and of tickets each. */
export const REMEMBERED_BOUNDS = { entries: 10_000, chars: 16 * 1024 * 1024 } as const;
