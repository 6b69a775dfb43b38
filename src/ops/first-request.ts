/**
 * A command for a shell that anybody can begin with, as often as they like: it makes a stream that holds a word, or
 * reads the page of a server that is read-only. `url` is what a stream's name is appended to.
 */
export function firstRequest(url: string, isReadOnly: boolean): string {
  return isReadOnly ? `curl ${quoted(url)}` : `curl -i -X PUT -H 'Content-Type: text/plain' --data hello ${quoted(`${url}hello`)}`;
}

/** One word of a shell, whatever characters the prefix has. */
function quoted(url: string): string {
  return /^[\w.:/~-]+$/.test(url) ? url : `'${url.replaceAll("'", "'\\''")}'`;
}
