// Checks the head of a request against HTTP, whatever the request asks for.

import { isIPv6 } from "node:net";
import type { Inbound } from "../node/message.js";
import type { Exchange } from "./exchange.js";
import { problem, type Problem } from "../encoding/problems.js";

/** A name or an IPv4 address, perhaps empty, and a port (RFC 3986, 3.2.2 and 3.2.3). */
const NAMED_HOST = /^(?:[\w.~!$&'()*+,;=-]|%[0-9A-F]{2})*(?::\d*)?$/i;

/** The same in brackets: an IPv6 address, the first group, or an address of a future version. */
const BRACKETED_HOST = /^\[(?:([0-9A-F:.]+)|v[0-9A-F]+\.[\w.~!$&'()*+,;=:-]+)\](?::\d*)?$/i;

/** What is wrong with the head of a request, whatever it asks for; `null` for nothing. */
export function faultOfHead({ req, headers }: Pick<Exchange, "req" | "headers">): Problem | null {
  const { repeated, host, authority, transferEncoding } = headers;
  if (repeated !== null) return problem("invalid-header", { detail: `The header ${repeated} came more than once.` });
  if (host !== null && !isValidHost(host))
    return problem("bad-request", { detail: "The Host header is not a host with an optional port." });
  if (authority !== null && authority !== host)
    return problem("bad-request", { detail: "Host and :authority name different hosts." });
  if (host === null && isHttp11(req)) return problem("bad-request", { detail: "HTTP/1.1 needs a Host header." });
  return transferEncoding === null ? null : faultOfTransferEncoding(transferEncoding, req);
}

function isHttp11({ httpVersionMajor, httpVersionMinor }: Inbound): boolean {
  return httpVersionMajor === 1 && httpVersionMinor === 1;
}

/** Whether a `Host` names an authority without user information (RFC 9110, 7.2). */
function isValidHost(host: string): boolean {
  if (NAMED_HOST.test(host)) return true;
  const bracketed = BRACKETED_HOST.exec(host);
  return bracketed !== null && (bracketed[1] === undefined || isIPv6(bracketed[1]));
}

/**
 * The parser finds the end of a body by the last coding alone. Under any other coding the bytes are not those that were
 * meant, and unless `chunked` comes last nobody knows where they end (RFC 9112, 6.1 and 6.3).
 */
function faultOfTransferEncoding(transferEncoding: string, req: Inbound): Problem | null {
  if (!isHttp11(req)) return problem("bad-request", { detail: "Only HTTP/1.1 has Transfer-Encoding." });
  const codings = transferEncoding
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim())
    .filter((coding) => coding !== "");
  if (codings.length === 0) return problem("bad-request", { detail: "Transfer-Encoding is empty." });
  if (codings.at(-1) !== "chunked")
    return problem("bad-request", { detail: "The last transfer coding of a request is chunked." });
  if (codings.some((coding) => coding !== "chunked")) return problem("unknown-transfer-coding");
  return codings.length === 1 ? null : problem("bad-request", { detail: "A body is chunked once." });
}
