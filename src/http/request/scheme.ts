// Tells which scheme a client used.

/** A request, as far as it shows the scheme. */
interface Schemed {
  readonly req: { readonly socket: object };
  /** As `Clients.identify` leaves them: from trusted proxies alone. */
  readonly headers: { readonly forwardedProto: string | null };
}

/** The scheme of the client's own connection: the one that a trusted proxy names, when it makes sense, else ours. */
export function schemeOf({ req, headers }: Schemed): "http" | "https" {
  const scheme = firstOf(headers.forwardedProto)?.toLowerCase();
  if (scheme === "http" || scheme === "https") return scheme;
  return "encrypted" in req.socket ? "https" : "http";
}

/** The first entry of a list that proxies add to: what the first of them was asked. */
export function firstOf(list: string | null): string | null {
  if (list === null) return null;
  const comma = list.indexOf(",");
  return (comma === -1 ? list : list.slice(0, comma)).trim();
}
