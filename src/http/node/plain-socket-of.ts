// Finds the connection below a TLS connection.
//
// Private name: `_parent` of a TLS socket, which is the socket that it was made of. A client whose handshake fails can
// be told why by it alone, and that a client of HTTP/2 has gone sometimes shows there alone. Where a version of Node
// lacks it, the one connection is closed without a word, and the other stays until it is cut as idle, or at a stop.

import { Socket } from "node:net";
import type { TLSSocket } from "node:tls";

/** The connection that `socket` was made of; `null` where that is not known, or takes no bytes any more. */
export function plainSocketOf(socket: TLSSocket): Socket | null {
  const parent = parentOf(socket);
  return parent?.writable === true ? parent : null;
}

/** The address of a client, which only the connection knows that its TLS connection was made of once both are over. */
export function clientAddressBelow(socket: TLSSocket): string | undefined {
  return parentOf(socket)?.remoteAddress ?? socket.remoteAddress;
}

function parentOf(socket: TLSSocket): Socket | null {
  const parent: unknown = Reflect.get(socket, "_parent");
  return parent instanceof Socket ? parent : null;
}
