import type { OptionSpec } from "./spec.js";

/** What the server proves who it is with. */
export const TLS_OPTIONS = {
  tlsCert: {
    flag: "tls-cert",
    env: "STREAMDIR_TLS_CERT",
    kind: "file",
    default: "",
    placeholder: "FILE",
    group: "TLS",
    help: "certificate chain in PEM, for HTTPS with HTTP/2 and HTTP/1.1",
  },
  tlsKey: {
    flag: "tls-key",
    env: "STREAMDIR_TLS_KEY",
    kind: "file",
    default: "",
    placeholder: "FILE",
    group: "TLS",
    help: "private key of the certificate, in PEM",
  },
  clientCa: {
    flag: "client-ca",
    env: "STREAMDIR_CLIENT_CA",
    kind: "file",
    default: "",
    placeholder: "FILE",
    group: "TLS",
    help: "CA in PEM of client certificates; their common name is the sub",
  },
} as const satisfies Record<string, OptionSpec>;
