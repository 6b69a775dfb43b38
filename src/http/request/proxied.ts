import { hostNameOf, isLoopbackName } from "../../net/host-name.js";

/** What proxies add to requests that they pass on. */
const ADDED = new Set(["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"]);

/**
 * Whether a request that came over loopback seems to come from elsewhere: a proxy says that it passes it on, or it asks
 * for a host that is not this machine. `rawHeaders` has names and values in turn. A client may pretend either; a proxy
 * that hides both is taken for a client.
 */
export function seemsProxied(rawHeaders: readonly string[], host: string | null): boolean {
  for (let at = 0; at < rawHeaders.length; at += 2) if (ADDED.has((rawHeaders[at] ?? "").toLowerCase())) return true;
  return host !== null && !isLoopbackName(hostNameOf(host));
}
