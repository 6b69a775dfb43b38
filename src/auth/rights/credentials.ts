/** What a request brought to show who sent it. `null` is an absent one. */
export interface Credentials {
  /** The value of `Authorization`. It comes before the others. */
  readonly authorization: string | null;
  /** The parameter `ticket` of the query, decoded. It comes before a certificate. */
  readonly ticket: string | null;
  /** The common name of the client's certificate, which a CA of `clientCa` has signed. */
  readonly certificateName: string | null;
  /** When that certificate ends, in milliseconds since 1970; never where it is left out. */
  readonly certificateEndsAtMs?: number;
}
