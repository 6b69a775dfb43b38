import { isIP } from "node:net";
import { TLSSocket } from "node:tls";
import type { Line } from "../node/message.js";
import { StreamLine } from "./stream-line.js";

/**
 * Whether the server's certificate on a connection is for this very name or address. One with an asterisk is also for
 * names that may be somebody else's. Always false where the connection is not TLS.
 */
export function isCertifiedFor(line: Pick<Line, "destroyed">, name: string): boolean {
  const socket = line instanceof StreamLine ? line.connection : line;
  const certificate = socket instanceof TLSSocket ? socket.getX509Certificate() : undefined;
  if (certificate === undefined) return false;
  const found =
    isIP(name) === 0 ? certificate.checkHost(name, { subject: "never", wildcards: false }) : certificate.checkIP(name);
  return found !== undefined;
}
