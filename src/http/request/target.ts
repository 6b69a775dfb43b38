/** A request's target in two: the path as sent, and what follows its `?`. */
export interface Target {
  readonly path: string;
  /** Without the `?`; empty when there is none. */
  readonly query: string;
}

const SLASH = 0x2f;

/** The start of an absolute target, with its authority. */
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i;

/** How much more of a URL a path may keep in memory: a name that is a part of it may stay as long as its stream. */
const MAX_KEPT_CHARS = 128;

/** Splits `IncomingMessage.url`. The absolute form that proxies send (RFC 9112, 3.2.2) gives its path. */
export function splitTarget(url: string): Target {
  const target = url.charCodeAt(0) === SLASH ? url : withoutAuthority(url);
  const mark = target.indexOf("?");
  const path = mark === -1 ? target : target.slice(0, mark);
  return {
    path: url.length - path.length > MAX_KEPT_CHARS ? copyOf(path) : path,
    query: mark === -1 ? "" : target.slice(mark + 1),
  };
}

/** The host that a request is for: an absolute target names it, whatever the `Host` says (RFC 9112, 3.2.2). */
export function hostOf(url: string, host: string | null): string | null {
  return url.charCodeAt(0) === SLASH ? host : (ABSOLUTE.exec(url)?.[1] ?? host);
}

function withoutAuthority(url: string): string {
  const absolute = ABSOLUTE.exec(url);
  if (absolute === null) return url;
  const rest = url.slice(absolute[0].length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** A part of a text keeps all of it in memory; a copy does not. */
function copyOf(text: string): string {
  return Buffer.from(text).toString();
}
