/** A request's target in two: the path as sent, and what follows its `?`. */
export interface Target {
  readonly path: string;
  /** Without the `?`; empty when there is none. */
  readonly query: string;
}

const SLASH = 0x2f;

/** Splits `IncomingMessage.url`. The absolute form that proxies send (RFC 9112, 3.2.2) gives its path. */
export function splitTarget(url: string): Target {
  const target = url.charCodeAt(0) === SLASH ? url : withoutAuthority(url);
  const mark = target.indexOf("?");
  return mark === -1 ? { path: target, query: "" } : { path: target.slice(0, mark), query: target.slice(mark + 1) };
}

function withoutAuthority(url: string): string {
  const authority = /^https?:\/\/[^/?#]*/i.exec(url);
  if (authority === null) return url;
  const rest = url.slice(authority[0].length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}
