import { TLSSocket } from "node:tls";
import type { ClientCertificate } from "../../auth/rights/credentials.js";
import type { Line } from "../node/message.js";
import { StreamLine } from "./stream-line.js";

/**
 * The certificate that a client has proved to be its own, signed by the authority of `--client-ca`; `null` for a client
 * without one, and for one whose certificate has no common name.
 */
export function certificateOf(line: Pick<Line, "destroyed">): ClientCertificate | null {
  const socket = line instanceof StreamLine ? line.connection : line;
  if (!(socket instanceof TLSSocket) || !socket.authorized) return null;
  const certificate = socket.getPeerCertificate();
  // A resumed session counts as authorized even where it has no certificate: then there is no subject.
  const subject: unknown = certificate.subject;
  const name: unknown = typeof subject === "object" && subject !== null ? Reflect.get(subject, "CN") : null;
  if (typeof name !== "string" || name === "") return null;
  const endsAtMs = Date.parse(certificate.valid_to);
  // A time that can't be read is past.
  return { name, endsAtMs: Number.isNaN(endsAtMs) ? 0 : endsAtMs };
}
