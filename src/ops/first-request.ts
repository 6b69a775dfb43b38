/**
 * A first shell command to try, any number of times: it creates a stream that holds a word, or reads the page of a
 * read-only server. `url` is the URL to which a stream's name is appended; a server that only has a Unix socket is asked
 * by that.
 */
export function firstRequest(url: string, isReadOnly: boolean, socketPath: string | null = null): string {
  const curl = socketPath === null ? "curl" : `curl --unix-socket ${quoted(socketPath)}`;
  return isReadOnly
    ? `${curl} ${quoted(url)}`
    : `${curl} -i -X PUT -H 'Content-Type: text/plain' --data hello ${quoted(`${url}hello`)}`;
}

/** Quotes a URL or a path as one word of a shell. */
function quoted(url: string): string {
  return /^[\w.:/~-]+$/.test(url) ? url : `'${url.replaceAll("'", "'\\''")}'`;
}
