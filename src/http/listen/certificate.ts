// Reads and checks what TLS needs: a certificate, its key, and the authority of clients.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { certificatesIn } from "../../net/certificates.js";
import { WatchedFile } from "../../ops/watched-file.js";
import type { TlsFiles } from "./plan.js";

const MAX_PEM_BYTES = 1024 * 1024;
/** A day. */
export const DAY_MS: number = 24 * 60 * 60 * 1000;
/** How long before its end a certificate is worth a warning: automatic renewals are done by then. */
const WARN_DAYS = 14;
/** Of one that is made for days, the last part of its life. */
const WARN_SHARE = 1 / 4;

/** A key that is encrypted, in both of its forms (RFC 1421, 4.6.1.1; RFC 7468, 11). */
const ENCRYPTED = /^(?:-----BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: *4, *ENCRYPTED)/m;

/** The server's certificate and its key, in PEM, and checked. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** When the certificate begins to hold, and when it ends. */
  readonly beginsAtMs: number;
  readonly endsAtMs: number;
}

/** Whose clients are let in: in PEM, and what is in it. */
export interface TrustedAuthorities {
  readonly pem: string;
  readonly certificates: readonly X509Certificate[];
}

/** Why a certificate can't be used, in one line. */
export class CertificateError extends Error {}

/** Reads a certificate and its key, and checks that they belong together. Throws {@link CertificateError}. */
export async function readCertificate(files: Pick<TlsFiles, "cert" | "key">): Promise<Certificate> {
  const [cert, key] = await Promise.all([read(files.cert), read(files.key)]);
  const parsed = parse(files.cert, () => new X509Certificate(cert));
  if (ENCRYPTED.test(key))
    throw new CertificateError(
      `Cannot use ${files.key}: it has a passphrase, which openssl pkey -in … -out … takes off`,
    );
  const privateKey = parse(files.key, () => createPrivateKey(key));
  if (!parsed.checkPrivateKey(privateKey))
    throw new CertificateError(`The key in ${files.key} is not that of the first certificate in ${files.cert}`);
  // All that the chain has beside its first certificate, and what OpenSSL finds too weak.
  parse(files.cert, () => createSecureContext({ cert, key }));
  return { cert, key, beginsAtMs: Date.parse(parsed.validFrom), endsAtMs: Date.parse(parsed.validTo) };
}

/** Reads the authorities of clients. Throws {@link CertificateError}. */
export async function readAuthorities(path: string): Promise<TrustedAuthorities> {
  const pem = await read(path);
  const certificates = parse(path, () => {
    const all = certificatesIn(pem);
    // Node reads a key when it is asked for, and may not know its kind.
    return all.filter(({ publicKey }) => publicKey.type === "public");
  });
  parse(path, () => createSecureContext({ ca: pem }));
  return { pem, certificates };
}

async function read(path: string): Promise<string> {
  try {
    return await WatchedFile.read(path, MAX_PEM_BYTES);
  } catch (error) {
    throw new CertificateError(`Cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

function parse<T>(path: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new CertificateError(`Cannot use ${path}: ${messageOf(error)}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
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
