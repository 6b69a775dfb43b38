import { TLSSocket } from "node:tls";
import type { Line } from "../node/message.js";
import { StreamLine } from "./stream-line.js";

/** No dot in front, which OpenSSL takes for all that is below the name, and no asterisk. */
const HOST_NAME = /^[a-z\d_-]+(?:\.[a-z\d_-]+)*$/;

/**
 * Whether the server's certificate on a connection is for this very name. One with an asterisk is also for names that
 * may be somebody else's. Always false where the connection is not TLS.
 */
export function isCertifiedFor(line: Pick<Line, "destroyed">, name: string): boolean {
  const socket = line instanceof StreamLine ? line.connection : line;
  const certificate = socket instanceof TLSSocket ? socket.getX509Certificate() : undefined;
  if (certificate === undefined || !HOST_NAME.test(name)) return false;
  return certificate.checkHost(name, { subject: "never", wildcards: false }) !== undefined;
}
