/**
 * A first shell command to try, any number of times: it creates a stream that holds a word, or reads the page of a
 * read-only server. `url` is the URL to which a stream's name is appended.
 */
export function firstRequest(url: string, isReadOnly: boolean): string {
  return isReadOnly
    ? `curl ${quoted(url)}`
    : `curl -i -X PUT -H 'Content-Type: text/plain' --data hello ${quoted(`${url}hello`)}`;
}

/** Quotes `url` as one word of a shell. */
function quoted(url: string): string {
  return /^[\w.:/~-]+$/.test(url) ? url : `'${url.replaceAll("'", "'\\''")}'`;
}
