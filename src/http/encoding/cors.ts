// The headers that let pages of other origins call, and that make stored content harmless in a browser.

import { hostNameOf, isLoopbackName } from "../../net/host-name.js";
import { CommonHeaders } from "./head.js";

/** The methods of a stream. */
export const STREAM_METHODS = "GET, HEAD, PUT, POST, DELETE, OPTIONS";

/** The methods that change nothing. */
export const READ_METHODS = "GET, HEAD, OPTIONS";

/** The methods of the place where tickets are issued. */
export const TICKET_METHODS = "POST, OPTIONS";

const REQUEST_HEADERS = [
  "Authorization",
  "Content-Type",
  "If-Match",
  "If-None-Match",
  "Last-Event-ID",
  "Producer-Epoch",
  "Producer-Id",
  "Producer-Seq",
  "Stream-Closed",
  "Stream-Expires-At",
  "Stream-Fork-Offset",
  "Stream-Fork-Sub-Offset",
  "Stream-Forked-From",
  "Stream-Seq",
  "Stream-TTL",
  "X-Request-Id",
  "traceparent",
].join(", ");

const RESPONSE_HEADERS = [
  "Allow",
  "ETag",
  "Location",
  "Producer-Epoch",
  "Producer-Expected-Seq",
  "Producer-Received-Seq",
  "Producer-Seq",
  "Retry-After",
  "Stream-Closed",
  "Stream-Cursor",
  "Stream-Earliest-Offset",
  "Stream-Expires-At",
  "Stream-Next-Offset",
  "Stream-SSE-Data-Encoding",
  "Stream-TTL",
  "Stream-Up-To-Date",
  "WWW-Authenticate",
  "X-Request-Id",
].join(", ");

/** How long a browser may keep the answer to a preflight, in seconds. */
const PREFLIGHT_MAX_AGE = String(24 * 3600);

/**
 * On every answer: what came from a stream is never run as something else, may be embedded anywhere, and where it is a
 * page of its own it has no origin, runs no script and loads nothing.
 */
const SECURITY = [
  "X-Content-Type-Options",
  "nosniff",
  "Cross-Origin-Resource-Policy",
  "cross-origin",
  "Content-Security-Policy",
  "sandbox; default-src 'none'",
];

/** The headers of an answer to a preflight, beyond those of every answer. */
export const PREFLIGHT_HEADERS: readonly string[] = [
  "Access-Control-Allow-Methods",
  STREAM_METHODS,
  "Access-Control-Allow-Headers",
  REQUEST_HEADERS,
  "Access-Control-Max-Age",
  PREFLIGHT_MAX_AGE,
];

const BY_ORIGIN = ["Vary", "Origin"];
/** Lets a page have its browser add a certificate. */
const WITH_CREDENTIALS = ["Access-Control-Allow-Credentials", "true"];

/** Most loopback origins whose headers are kept; those of more are made each time. */
const MAX_KEPT = 64;
const ORIGIN = /^https?:\/\/((?:\[[\dA-Fa-f:.]+\]|[\w.-]+)(?::\d+)?)$/;

/** What else decides on the headers. */
export interface CorsOptions {
  /** No page passes on the URL that it was read from, which may hold a ticket. */
  readonly hidesUrls?: boolean;
  /** Browsers may have certificates, which they add by themselves: what one adds for a page that was named counts. */
  readonly hasCertificates?: boolean;
}

/** What of a request says which page asks. */
export interface Asking {
  readonly origin: string | null;
  /** Whether it seems to come from another machine, where `localhost` is not this one. */
  readonly seemsProxied: boolean;
}

/** Which origins a browser may call from, and the headers that tell it so. */
export class CorsPolicy {
  /** `*`, `loopback`, or the origins themselves. */
  readonly #allowed: "*" | "loopback" | ReadonlySet<string>;
  readonly #byOrigin = new Map<string, CommonHeaders>();
  readonly #forAll: readonly string[];
  /** To pages that were named. */
  readonly #forNamed: readonly string[];
  readonly #default: CommonHeaders;
  /** For an answer to an unknown client: it says nothing about a stream, and a page should learn why it was refused. */
  readonly forAnyone: CommonHeaders;

  /**
   * `setting` is `*`, `loopback` for the pages of this machine, or origins separated by commas. With `loopback` only
   * requests for this machine count: in other browsers a page of `localhost` is one of the visitor's machine.
   */
  constructor(setting: string, { hidesUrls = false, hasCertificates = false }: CorsOptions = {}) {
    const security = hidesUrls ? [...SECURITY, "Referrer-Policy", "no-referrer"] : SECURITY;
    // A certificate counts for some pages and not for others.
    this.forAnyone = new CommonHeaders([...security, ...(hasCertificates ? BY_ORIGIN : []), ...allowing("*")]);
    const isListed = setting !== "*" && setting !== "loopback";
    const listed = isListed ? setting.split(",").map((origin) => origin.trim().toLowerCase()) : [];
    this.#allowed = isListed ? new Set(listed) : setting;
    // The answer depends on who asks: a cache must not give one origin's to another.
    this.#forAll = [...security, ...BY_ORIGIN];
    this.#forNamed = hasCertificates && isListed ? [...this.#forAll, ...WITH_CREDENTIALS] : this.#forAll;
    this.#default = setting === "*" ? this.forAnyone : new CommonHeaders(this.#forAll);
    for (const origin of listed) this.#byOrigin.set(origin, this.#allowing(origin));
  }

  /** Whether the page that asks may call; false where no page does. */
  allows(asking: Asking): boolean {
    const { origin } = asking;
    if (origin === null) return false;
    if (this.#allowed === "*") return true;
    if (this.#allowed !== "loopback") return this.#allowed.has(origin);
    if (asking.seemsProxied) return false;
    const authority = ORIGIN.exec(origin)?.[1];
    return authority !== undefined && isLoopbackName(hostNameOf(authority));
  }

  /** Whether the page that asks was named, and not let in with all others. */
  names(asking: Asking): boolean {
    return this.#allowed !== "*" && this.allows(asking);
  }

  /** The headers for an answer to the page that asks, or to who is no page. */
  headersFor(asking: Asking): CommonHeaders {
    const { origin } = asking;
    if (origin === null || this.#allowed === "*") return this.#default;
    if (this.#allowed === "loopback" && asking.seemsProxied) return this.#default;
    const kept = this.#byOrigin.get(origin);
    if (kept !== undefined) return kept;
    if (!this.allows(asking)) return this.#default;
    const headers = this.#allowing(origin);
    if (this.#byOrigin.size < MAX_KEPT) this.#byOrigin.set(origin, headers);
    return headers;
  }

  #allowing(origin: string): CommonHeaders {
    return new CommonHeaders([...this.#forNamed, ...allowing(origin)]);
  }
}

function allowing(origin: string): string[] {
  return ["Access-Control-Allow-Origin", origin, "Access-Control-Expose-Headers", RESPONSE_HEADERS];
}
