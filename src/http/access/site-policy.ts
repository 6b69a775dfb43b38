// Keeps other sites' pages from using the server through their visitors' browsers.

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
}

/**
 * Refuses what a page of another site may have sent. A browser says in `Host` which name it asked (which a page that
 * rebinds its own name to this machine can't change), and in `Origin` which page changes something (docs/SECURITY.md).
 */
export class SitePolicy {
  readonly #cors: CorsPolicy;
  readonly #checksHosts: boolean;
  readonly #isListed: (name: string) => boolean;
  /** The last `Host` that was fine: nearly all requests have the same. */
  #lastHost: string | null = null;

  constructor({ cors, allowHost, checksHosts }: SitePolicyOptions) {
    this.#cors = cors;
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
   * Why a change that a page asks for is refused; `null` when it may ask, or no page did. With `isAmbient` the browser
   * has added the credential by itself: then only pages that were named may ask, and our own.
   */
  refusalOfOrigin({ req, headers }: Exchange, isAmbient = false): Problem | null {
    const { origin } = headers;
    if (origin === null || (isAmbient ? this.#cors.names(headers) : this.#cors.allows(headers))) return null;
    if (this.#isOwnPage(origin, headers.host, schemeOf({ req, headers }))) return null;
    return problem("origin-not-allowed", { detail: "--cors-origin lists the origins that may." });
  }

  /**
   * Whether a page came from here. Only a name that is certainly ours shows it: a page can rebind its own. Where the
   * client's connection is TLS, to us or to a proxy, a page that came without is not ours: anybody between could have
   * sent it.
   */
  #isOwnPage(origin: string, host: string | null, scheme: "http" | "https"): boolean {
    const authority = (scheme === "https" ? /^https:\/\/(.+)$/ : /^https?:\/\/(.+)$/).exec(origin)?.[1];
    return host !== null && authority === host.toLowerCase() && this.#isOurs(host);
  }

  #isOurs(host: string): boolean {
    const name = hostNameOf(host);
    return isLoopbackName(name) || this.#isListed(name);
  }
}
