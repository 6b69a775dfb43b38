import type { X509Certificate } from "node:crypto";

/** What a request brought to show who sent it. `null` is an absent one. */
export interface Credentials {
  /** The value of `Authorization`. It comes before the others. */
  readonly authorization: string | null;
  /** The parameter `ticket` of the query, decoded. It comes before a certificate. */
  readonly ticket: string | null;
  /** What the client has proved to be its own, signed by a CA of `clientCa`. */
  readonly certificate: ClientCertificate | null;
}

/** A client's certificate. */
export interface ClientCertificate {
  /** Its common name; empty where it has none, or more than one. */
  readonly name: string;
  /** Itself, and then what the client says has signed the one before: of its choice, and to be verified. */
  readonly chain: readonly X509Certificate[];
  /** When it begins, in milliseconds since 1970: a revocation by age goes by that. */
  readonly beginsAtMs: number;
  /** When it ends, in milliseconds since 1970. */
  readonly endsAtMs: number;
}
