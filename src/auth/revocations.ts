import { createHash } from "node:crypto";
import type { RevocationEntry } from "./auth-file.js";

/** What a credential is known by. */
export type RevocationKind = RevocationEntry["kind"];

/**
 * What a ticket can be tied to: what can be revoked, the terms of a JWT's issuer and the key that signed it, the grants
 * of certificates and the authority of one.
 */
export type TagKind = RevocationKind | "issuer" | "key" | "certificates" | "authority";

const TAG_CHARS = 16;
const TAG_LETTERS = {
  id: "i",
  sub: "s",
  jti: "j",
  issuer: "u",
  key: "k",
  certificates: "c",
  authority: "a",
} as const satisfies Record<TagKind, string>;

/**
 * What stands in a ticket for who asked for it: so that a revocation of the one ends the other, and the ticket, which
 * is in a URL, tells no name to who does not guess it.
 */
export function tagOf(kind: TagKind, value: string): string {
  const hash = createHash("sha256").update(`${kind}:${value}`).digest("base64url");
  return TAG_LETTERS[kind] + hash.slice(0, TAG_CHARS);
}

const SECRET_LETTER = "h";

/** What stands in a ticket for the secret of the token that asked for it: a new token of that name is another asker. */
export function secretTagOf(id: string, hash: Buffer): string {
  const print = createHash("sha256").update(`secret:${id}:`).update(hash).digest("base64url");
  return SECRET_LETTER + print.slice(0, TAG_CHARS);
}

/** Whether a tag stands for something of this kind. */
export function isTagOf(kind: TagKind, tag: string): boolean {
  return tag.startsWith(TAG_LETTERS[kind]);
}

/** Whether a tag stands for a token's secret. */
export function isSecretTag(tag: string): boolean {
  return tag.startsWith(SECRET_LETTER);
}

/** What no longer counts. */
export class Revocations {
  readonly #beforeMs = new Map<string, number>();
  readonly #beforeMsByTag = new Map<string, number>();

  constructor(entries: readonly RevocationEntry[]) {
    for (const { kind, value, beforeMs } of entries) {
      raise(this.#beforeMs, `${kind}:${value}`, beforeMs);
      raise(this.#beforeMsByTag, tagOf(kind, value), beforeMs);
    }
  }

  /**
   * Whether what `value` names is revoked. `madeMs` is when it was made: where that is not known (`null`), every
   * revocation counts.
   */
  has(kind: RevocationKind, value: string, madeMs: number | null): boolean {
    return isBefore(madeMs, this.#beforeMs.get(`${kind}:${value}`));
  }

  /** The same by the tag in a ticket. */
  hasTag(tag: string, madeMs: number | null): boolean {
    return isBefore(madeMs, this.#beforeMsByTag.get(tag));
  }
}

function raise(times: Map<string, number>, key: string, beforeMs: number): void {
  times.set(key, Math.max(beforeMs, times.get(key) ?? -Infinity));
}

function isBefore(madeMs: number | null, beforeMs: number | undefined): boolean {
  return beforeMs !== undefined && (madeMs === null || madeMs < beforeMs);
}
