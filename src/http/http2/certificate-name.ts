import { TLSSocket } from "node:tls";
import type { Line } from "../node/message.js";
import { StreamLine } from "./stream-line.js";

/** A certificate that a client has proved to be its own. */
export interface ClientCertificate {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly endsAtMs: number;
}

/** The name of a client's certificate, and when that ends; `null` for a client without one. */
export function certificateOf(line: Pick<Line, "destroyed">): ClientCertificate | null {
  const name = certificateNameOf(line);
  if (name === null) return null;
  const socket = line instanceof StreamLine ? line.connection : line;
  const endsAtMs = socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : NaN;
  // A time that can't be read is past.
  return { name, endsAtMs: Number.isNaN(endsAtMs) ? 0 : endsAtMs };
}

/**
 * The common name of the certificate that a client has proved to be its own, signed by the authority of `--client-ca`;
 * `null` for a client without one.
 */
export function certificateNameOf(line: Pick<Line, "destroyed">): string | null {
  const socket = line instanceof StreamLine ? line.connection : line;
  if (!(socket instanceof TLSSocket) || !socket.authorized) return null;
  // A resumed session counts as authorized even where it has no certificate: then there is no subject.
  const subject: unknown = socket.getPeerCertificate().subject;
  const name: unknown = typeof subject === "object" && subject !== null ? Reflect.get(subject, "CN") : null;
  return typeof name === "string" && name !== "" ? name : null;
}
