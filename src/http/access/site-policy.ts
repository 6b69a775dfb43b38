// Keeps other sites' pages from using the server through their visitors' browsers.

import { isIP } from "node:net";
import { hostMatcher, hostNameOf, isLoopbackName } from "../../net/host-name.js";
import { isOfUnixSocket } from "../bounds/clients.js";
import type { CorsPolicy } from "../encoding/cors.js";
import { problem, type Problem } from "../encoding/problems.js";
import type { Exchange } from "../exchange/exchange.js";
import { schemeOf } from "../request/scheme.js";

/** What a site policy is made of. */
export interface SitePolicyOptions {
  readonly cors: CorsPolicy;
  /** Names beside loopback's that requests may be for; separated by commas (option `allowHost`). */
  readonly allowHost: string;
  /** Whether requests for other names are refused. */
  readonly checksHosts: boolean;
  /** Whether the server has shown a certificate for this name on the connection. */
  readonly isCertifiedFor: (exchange: Exchange, name: string) => boolean;
}

/**
 * Refuses what a page of another site may have sent. A browser says in `Host` which name it asked (which a page that
 * rebinds its own name to this machine can't change), and in `Origin` which page changes something (docs/SECURITY.md).
 */
export class SitePolicy {
  readonly #cors: CorsPolicy;
  readonly #checksHosts: boolean;
  readonly #isListed: (name: string) => boolean;
  readonly #isCertifiedFor: SitePolicyOptions["isCertifiedFor"];
  /** The last `Host` that was fine: nearly all requests have the same. */
  #lastHost: string | null = null;

  constructor({ cors, allowHost, checksHosts, isCertifiedFor }: SitePolicyOptions) {
    this.#cors = cors;
    this.#isCertifiedFor = isCertifiedFor;
    this.#checksHosts = checksHosts;
    this.#isListed = hostMatcher(allowHost);
  }

  /** Why a request for another machine's name is refused; `null` when it is for ours. */
  refusalOfHost({ req, headers }: Exchange): Problem | null {
    const { host } = headers;
    if (!this.#checksHosts || host === null || host === this.#lastHost) return null;
    // No browser reaches a Unix socket.
    if (isOfUnixSocket(req.socket)) return null;
    if (this.#isOurs(host)) {
      this.#lastHost = host;
      return null;
    }
    return problem("host-not-allowed", {
      detail: "The Host is none of this machine's: --allow-host lets in the names that a proxy passes on.",
    });
  }

  /**
   * Why what a page asks for is refused; `null` when it may ask, or no page did. With `isAmbient` the browser has added
   * the credential by itself: then only pages that were named may ask, and our own.
   */
  refusalOfOrigin(exchange: Exchange, isAmbient = false): Problem | null {
    const { headers } = exchange;
    const { origin, host } = headers;
    if (origin === null || (isAmbient ? this.#cors.names(headers) : this.#cors.allows(headers))) return null;
    if (host === null || !isOfName(origin, host, schemeOf(exchange))) return problem("origin-not-allowed", FOREIGN);
    return this.#isCertainlyOurs(exchange, host) ? null : problem("origin-not-allowed", UNSURE);
  }

  /** A page can rebind its own name, but no address, nor one that our certificate has. */
  #isCertainlyOurs(exchange: Exchange, host: string): boolean {
    const name = hostNameOf(host);
    return this.#isOurs(host) || isIP(name) !== 0 || this.#isCertifiedFor(exchange, name);
  }

  #isOurs(host: string): boolean {
    const name = hostNameOf(host);
    return isLoopbackName(name) || this.#isListed(name);
  }
}

const FOREIGN = { detail: "--cors-origin lists the origins that may." };
const UNSURE = { detail: "Pages of this host may where --allow-host names it: any page could give itself its name." };

/**
 * Whether a page came from this host. Where the client's connection is TLS, to us or to a proxy, one that came without
 * did not: anybody between could have sent it.
 */
function isOfName(origin: string, host: string, scheme: "http" | "https"): boolean {
  const [, kind = "", authority = ""] = /^(https?):\/\/(.+)$/.exec(origin.toLowerCase()) ?? [];
  if (authority === "" || (scheme === "https" && kind === "http")) return false;
  // Some proxies write out what is meant.
  const port = kind === "https" ? /:443$/ : /:80$/;
  return authority.replace(port, "") === host.toLowerCase().replace(port, "");
}
