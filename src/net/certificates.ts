// Reads certificates in PEM.

import { X509Certificate } from "node:crypto";

const PEM_CERTIFICATE = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END [^-]*-----/g;

const BEGIN = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/g;

/** All certificates in a text. Throws where there is none, and where one is not sound or cut off. */
export function certificatesIn(pem: string): X509Certificate[] {
  const whole = pem.match(PEM_CERTIFICATE) ?? [];
  if (whole.length < (pem.match(BEGIN) ?? []).length) throw new Error("a certificate is cut off");
  const [first = pem, ...others] = whole;
  return [first, ...others].map((one) => new X509Certificate(one));
}
