import { checkServerIdentity, type PeerCertificate } from "node:tls";

/** What TLS says of a certificate that no known authority has signed. */
const OF_NO_AUTHORITY: ReadonlySet<unknown> = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/**
 * Checks that a certificate is for one of these servers, each `host:port`. Which of them was dialled can't be told:
 * where that was by an IP address the client of NATS checks for `localhost`.
 */
export function identityCheckFor(
  servers: readonly string[],
): (host: string, certificate: PeerCertificate) => Error | undefined {
  const hosts = servers.map((server) => server.replace(/:\d+$/, "").replace(/^\[|\]$/g, ""));
  return (_host, certificate) => {
    const faults = hosts.map((host) => checkServerIdentity(host, certificate));
    return faults.includes(undefined) ? undefined : faults[0];
  };
}

/** What to do about a fault of TLS, to be added to its line; empty where nothing is known. */
export function hintOf(fault: unknown): string {
  const code: unknown = fault instanceof Error ? Reflect.get(fault, "code") : undefined;
  return OF_NO_AUTHORITY.has(code) ? "; an authority of your own has to be in the file of NODE_EXTRA_CA_CERTS" : "";
}
