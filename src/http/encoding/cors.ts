// The headers that let pages of other origins call, and that make stored content harmless in a browser.

import { CommonHeaders } from "./head.js";

/** The methods of a stream. */
export const STREAM_METHODS = "GET, HEAD, PUT, POST, DELETE, OPTIONS";

/** The methods that change nothing. */
export const READ_METHODS = "GET, HEAD, OPTIONS";

const REQUEST_HEADERS = [
  "Authorization",
  "Content-Type",
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

/** Which origins a browser may call from, as the headers that every answer carries. */
export class CorsPolicy {
  /** `null` when any origin may call. */
  readonly #byOrigin: ReadonlyMap<string, CommonHeaders> | null;
  readonly #default: CommonHeaders;
  /** For an answer to an unknown client: it says nothing about a stream, and a page should learn why it was refused. */
  readonly forAnyone: CommonHeaders = new CommonHeaders([...SECURITY, ...allowing("*")]);

  /** `setting` is `*` or origins separated by commas (option `corsOrigin`). */
  constructor(setting: string) {
    if (setting === "*") {
      this.#byOrigin = null;
      this.#default = this.forAnyone;
      return;
    }
    // The answer depends on who asks: a cache must not give one origin's to another.
    const forAll = [...SECURITY, "Vary", "Origin"];
    this.#default = new CommonHeaders(forAll);
    const origins = setting.split(",").map((origin) => origin.trim().toLowerCase());
    this.#byOrigin = new Map(origins.map((origin) => [origin, new CommonHeaders([...forAll, ...allowing(origin)])]));
  }

  /** The headers for an answer to a request whose `Origin` is `origin`. */
  headersFor(origin: string | null): CommonHeaders {
    if (this.#byOrigin === null || origin === null) return this.#default;
    return this.#byOrigin.get(origin) ?? this.#default;
  }
}

function allowing(origin: string): string[] {
  return ["Access-Control-Allow-Origin", origin, "Access-Control-Expose-Headers", RESPONSE_HEADERS];
}
