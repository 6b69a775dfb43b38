// Reads certificates in PEM.

import { X509Certificate } from "node:crypto";

const PEM_CERTIFICATE = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END [^-]*-----/g;

/** All certificates that OpenSSL finds in a text. Throws where the first is none, and where there is none. */
export function certificatesIn(pem: string): X509Certificate[] {
  const [first = pem, ...others] = pem.match(PEM_CERTIFICATE) ?? [];
  return [first, ...others].map((one) => new X509Certificate(one));
}
