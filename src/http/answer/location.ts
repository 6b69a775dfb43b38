// Makes the absolute URLs that answers have.

import type { Exchange } from "../exchange/exchange.js";
import { firstOf, schemeOf } from "../request/scheme.js";

/** A host with an optional port, as a `Host` header has it: nothing that could lead a client's URL elsewhere. */
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;
const MAX_HOST_LENGTH = 255;

/** What no path of a URI has, though clients send it (RFC 3986, section 3.3). */
const NOT_IN_PATHS = /[^\w!$%&'()*+,\-./:;=@~]/g;

/**
 * The absolute URL of the stream that a request names, for `Location` (docs/api.md, Create a stream). The path is as it
 * was sent, but for what a path may not have: client libraries refuse that, and it is percent-encoded.
 */
export function locationOf(exchange: Exchange): string {
  return baseOf(exchange) + exchange.target.path.replace(NOT_IN_PATHS, percentEncoded);
}

/** A byte, as Node shows those of a path as characters. */
function percentEncoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

/**
 * What stands in front of the server's paths: scheme and host of a request, and where a host has mounted the handler.
 * They are what a proxy says the client asked for, when that makes sense, else the `Host` header, else where the
 * connection ends.
 */
export function baseOf({ req, headers, mount }: Pick<Exchange, "req" | "headers" | "mount">): string {
  const host =
    hostOf(headers.forwardedHost) ?? hostOf(headers.host) ?? socketHost(req.socket.localAddress, req.socket.localPort);
  return `${schemeOf({ req, headers })}://${host}${mount}`;
}

function hostOf(host: string | null): string | null {
  const first = firstOf(host);
  return first !== null && first.length <= MAX_HOST_LENGTH && HOST.test(first) ? first : null;
}

function socketHost(address = "localhost", port = 80): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
