import { X509Certificate } from "node:crypto";
import { TLSSocket, type DetailedPeerCertificate } from "node:tls";
import type { ClientCertificate } from "../../auth/rights/credentials.js";
import type { Line } from "../node/message.js";
import { StreamLine } from "./stream-line.js";

/** A longer chain of certificates is not read on. */
const MAX_CHAIN = 10;

/** The certificates that connections began with: Node decodes one anew each time it is asked. */
const known = new WeakMap<TLSSocket, ClientCertificate | null>();

/**
 * The certificate that a client has proved to be its own, signed by an authority of `--client-ca`; `null` for a client
 * without one, and only for that: one that names nobody is a credential, and a wrong one.
 */
export function certificateOf(line: Pick<Line, "destroyed">): ClientCertificate | null {
  const socket = line instanceof StreamLine ? line.connection : line;
  if (!(socket instanceof TLSSocket)) return null;
  let certificate = known.get(socket);
  if (certificate === undefined) known.set(socket, (certificate = readCertificate(socket)));
  return certificate;
}

function readCertificate(socket: TLSSocket): ClientCertificate | null {
  const peer = socket.getPeerCertificate(true);
  // A client without a certificate has an empty object. A session that is resumed counts as authorized without one.
  if (!Buffer.isBuffer(peer.raw)) return null;
  // Of several common names Node makes a list.
  const subject: unknown = peer.subject;
  const name: unknown = typeof subject === "object" && subject !== null ? Reflect.get(subject, "CN") : null;
  return {
    name: socket.authorized && typeof name === "string" ? name : "",
    chain: chainOf(peer),
    beginsAtMs: timeOf(peer.valid_from),
    endsAtMs: timeOf(peer.valid_to),
  };
}

/** A time that can't be read is long past. */
function timeOf(text: string): number {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? 0 : ms;
}

function chainOf(peer: DetailedPeerCertificate): X509Certificate[] {
  const chain = [];
  for (let at: DetailedPeerCertificate | undefined = peer; at !== undefined && chain.length < MAX_CHAIN;) {
    chain.push(new X509Certificate(at.raw));
    // One that has signed itself is its own issuer.
    at = at.issuerCertificate === at ? undefined : at.issuerCertificate;
  }
  return chain;
}
