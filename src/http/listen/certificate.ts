// Whose clients are let in, and what of a certificate's time is worth a warning.

import type { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { certificatesIn } from "../../net/certificates.js";
import { parsePem, readPem, type Certificate } from "../../ops/certificate-files.js";

/** A day. */
export const DAY_MS: number = 24 * 60 * 60 * 1000;
/** How long before its end a certificate is worth a warning: automatic renewals are done by then. */
const WARN_DAYS = 14;
/** Of one that is made for days, the last part of its life. */
const WARN_SHARE = 1 / 4;

/** Whose clients are let in: in PEM, and what is in it. */
export interface TrustedAuthorities {
  readonly pem: string;
  readonly certificates: readonly X509Certificate[];
}

/** Reads the authorities of clients. Throws a CertificateError. */
export async function readAuthorities(path: string): Promise<TrustedAuthorities> {
  const pem = await readPem(path);
  const certificates = parsePem(path, () => {
    const all = certificatesIn(pem);
    // Node reads a key when it is asked for, and may not know its kind.
    return all.filter(({ publicKey }) => publicKey.type === "public");
  });
  parsePem(path, () => createSecureContext({ ca: pem }));
  return { pem, certificates };
}

/** What of a certificate's time is worth a warning at `nowMs`; `null` for nothing. */
export function warningOf(
  { beginsAtMs, endsAtMs }: Pick<Certificate, "beginsAtMs" | "endsAtMs">,
  nowMs: number,
): "early" | "soon" | "over" | null {
  if (beginsAtMs > nowMs) return "early";
  if (endsAtMs <= nowMs) return "over";
  const beforeMs = Math.min(WARN_DAYS * DAY_MS, (endsAtMs - beginsAtMs) * WARN_SHARE);
  return endsAtMs - nowMs < beforeMs ? "soon" : null;
}
