// What is read of certificates in PEM, for whoever shows one: a server, or one of its clients.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { WatchedFile } from "./watched-file.js";

const MAX_PEM_BYTES = 1024 * 1024;

/** A key that is encrypted, in both of its forms (RFC 1421, 4.6.1.1; RFC 7468, 11). */
const ENCRYPTED = /^(?:-----BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: *4, *ENCRYPTED)/m;

/** Paths of a certificate, with the chain above it, and of its private key, in PEM. One file may have both. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** A certificate and its key, in PEM, and checked. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** When the certificate begins to hold, and when it ends. */
  readonly beginsAtMs: number;
  readonly endsAtMs: number;
}

/** Why a certificate can't be used, in one line. */
export class CertificateError extends Error {}

/** Reads a certificate and its key, and checks that they belong together. Throws {@link CertificateError}. */
export async function readCertificate(files: CertificateFiles): Promise<Certificate> {
  const [cert, key] = await Promise.all([readPem(files.cert), readPem(files.key)]);
  const parsed = parsePem(files.cert, () => new X509Certificate(cert));
  if (ENCRYPTED.test(key))
    throw new CertificateError(
      `Cannot use ${files.key}: it has a passphrase, which openssl pkey -in … -out … takes off`,
    );
  if (!key.includes(" PRIVATE KEY-----")) throw new CertificateError(`There is no private key in ${files.key}`);
  const privateKey = parsePem(files.key, () => createPrivateKey(key));
  if (!parsed.checkPrivateKey(privateKey))
    throw new CertificateError(`The key in ${files.key} is not that of the first certificate in ${files.cert}`);
  // All that the chain has beside its first certificate, and what OpenSSL finds too weak.
  parsePem(files.cert, () => createSecureContext({ cert, key }));
  return { cert, key, beginsAtMs: Date.parse(parsed.validFrom), endsAtMs: Date.parse(parsed.validTo) };
}

/** The text of a file. Throws {@link CertificateError}. */
export async function readPem(path: string): Promise<string> {
  try {
    return await WatchedFile.read(path, MAX_PEM_BYTES);
  } catch (error) {
    throw new CertificateError(`Cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** What `make` makes of the text of a file; what it throws becomes a {@link CertificateError} with the file's name. */
export function parsePem<T>(path: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new CertificateError(`Cannot use ${path}: ${messageOf(error)}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
