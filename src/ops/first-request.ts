/** What a first request depends on. */
export interface FirstRequestOptions {
  /** The server takes no changes: then its page is read. */
  readonly readOnly: boolean;
  /** The server asks for a token. */
  readonly needsToken: boolean;
  /** The only way to a server that has no other; `null` where there is an address. */
  readonly socketPath?: string | null;
}

/**
 * A first shell command to try, any number of times: it creates a stream that holds a word. `url` is the URL to which a
 * stream's name is appended.
 */
export function firstRequest(url: string, { readOnly, needsToken, socketPath = null }: FirstRequestOptions): string {
  const curl = socketPath === null ? "curl" : `curl --unix-socket ${quoted(socketPath)}`;
  if (readOnly) return `${curl} ${quoted(url)}`;
  const token = needsToken ? '-H "Authorization: Bearer $STREAMDIR_TOKEN" ' : "";
  return `${curl} -i -X PUT ${token}-H 'Content-Type: text/plain' --data hello ${quoted(`${url}hello`)}`;
}

/** Quotes a URL or a path as one word of a shell. */
function quoted(url: string): string {
  return /^[\w.:/~-]+$/.test(url) ? url : `'${url.replaceAll("'", "'\\''")}'`;
}
