// Whose signature makes a client's certificate count.

import { createHash } from "node:crypto";
import type { X509Certificate } from "node:crypto";
import { tagOf } from "./revocations.js";
import type { ClientCertificate } from "./rights/credentials.js";

/** A longer chain of signatures is not followed. */
const MAX_CHAIN = 10;

interface ClientAuthority {
  /** Its subject and key: of an authority whose certificate is renewed they stay. */
  readonly name: string;
  readonly certificate: X509Certificate;
}

/**
 * The authorities whose clients count now. TLS has let a connection in by those of its beginning, which it may have
 * outlived; and it says only that one of them has signed, not which.
 */
export class ClientAuthorities {
  /** `null` where somebody else's TLS decides. */
  #authorities: readonly ClientAuthority[] | null = null;
  #tags: ReadonlySet<string> = new Set();
  #signers = new WeakMap<ClientCertificate, string | null>();

  /** From now on these count, and no others. */
  replace(certificates: readonly X509Certificate[]): void {
    this.#authorities = certificates.map((certificate) => ({ name: nameOf(certificate), certificate }));
    this.#tags = new Set(this.#authorities.map(({ name }) => tagOf("authority", name)));
    this.#signers = new WeakMap();
  }

  /** Whether one that counts has signed a certificate. */
  trust(certificate: ClientCertificate): boolean {
    return this.#authorities === null || this.signerOf(certificate) !== null;
  }

  /** Names the authority that has signed a certificate; `null` where none that counts has. */
  signerOf(certificate: ClientCertificate): string | null {
    let signer = this.#signers.get(certificate);
    if (signer === undefined) this.#signers.set(certificate, (signer = this.#findSigner(certificate.chain)));
    return signer;
  }

  /** Whether the one with this tag in a ticket counts. */
  hasTag(tag: string): boolean {
    return this.#authorities === null || this.#tags.has(tag);
  }

  #findSigner(chain: readonly X509Certificate[]): string | null {
    for (const [at, certificate] of chain.slice(0, MAX_CHAIN).entries()) {
      const signer = this.#authorities?.find((authority) => isSignedBy(certificate, authority.certificate));
      if (signer !== undefined) return signer.name;
      const next = chain[at + 1];
      if (next?.ca !== true || !isSignedBy(certificate, next)) return null;
    }
    return null;
  }
}

function isSignedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function nameOf({ subject, publicKey }: X509Certificate): string {
  const key = publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(`${subject}\n`).update(key).digest("base64url");
}
