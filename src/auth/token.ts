// Tokens: `sd_<id>_<secret>`, of which the auth file has only a hash.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { base64UrlLength } from "../protocol/base64url.js";
import { ID_PATTERN } from "./auth-file.js";
import type { TokenEntry } from "./auth-file.js";
import { KnownCaller } from "./known-caller.js";
import { secretTagOf, tagOf } from "./revocations.js";
import type { Revocations } from "./revocations.js";
import { Grants } from "./rights/grant.js";
import type { Grant } from "./rights/grant.js";

/** What every token begins with. */
export const TOKEN_PREFIX = "sd_";

const SECRET_BYTES = 32;
const SECRET_CHARS = base64UrlLength(SECRET_BYTES);
const SECRET_PATTERN = /^[\w-]+$/;

/** A token, taken apart. */
export interface ParsedToken {
  readonly id: string;
  readonly secret: string;
}

/** Takes a token apart; `null` for anything else. The secret may have `_` in it, so it is counted from the end. */
export function parseToken(text: string): ParsedToken | null {
  const secretAt = text.length - SECRET_CHARS;
  if (secretAt < TOKEN_PREFIX.length + 2 || !text.startsWith(TOKEN_PREFIX) || text[secretAt - 1] !== "_") return null;
  const [id, secret] = [text.slice(TOKEN_PREFIX.length, secretAt - 1), text.slice(secretAt)];
  return ID_PATTERN.test(id) && SECRET_PATTERN.test(secret) ? { id, secret } : null;
}

/** The hash of a secret, as the auth file has it. */
export function hashSecret(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

/** A new token, and the hash of its secret. */
export function makeToken(id: string): { readonly token: string; readonly hash: Buffer } {
  const secret = randomBytes(SECRET_BYTES).toString("base64url");
  return { token: `${TOKEN_PREFIX}${id}_${secret}`, hash: hashSecret(secret) };
}

/** The tokens of an auth file. */
export class Tokens {
  readonly #byId: ReadonlyMap<string, TokenEntry>;
  readonly #byTag: ReadonlyMap<string, TokenEntry>;
  readonly #secretTags: ReadonlySet<string>;
  readonly #revocations: Revocations;
  readonly #callers = new Map<TokenEntry, KnownCaller>();
  /** By what the file says: tokens with the same rights share them. */
  readonly #grants = new Map<string, Grants>();
  /** What the secret of an id that is not there is compared with. */
  readonly #nobody = randomBytes(SECRET_BYTES);

  constructor(entries: readonly TokenEntry[], revocations: Revocations) {
    this.#byId = new Map(entries.map((entry) => [entry.id, entry]));
    this.#byTag = new Map(entries.map((entry) => [tagOf("id", entry.id), entry]));
    this.#secretTags = new Set(entries.map(({ id, hash }) => secretTagOf(id, hash)));
    this.#revocations = revocations;
  }

  /** Whose token it is; `null` when it is unknown, over or revoked. An unknown id takes as long as a wrong secret. */
  authenticate({ id, secret }: ParsedToken, nowMs: number): KnownCaller | null {
    const entry = this.#byId.get(id);
    const isRight = timingSafeEqual(hashSecret(secret), entry?.hash ?? this.#nobody);
    return entry !== undefined && isRight ? this.#callerOf(entry, nowMs) : null;
  }

  /** Who had the token with this id and hash; `null` when it no longer counts. */
  renew(id: string, hash: Buffer, nowMs: number): KnownCaller | null {
    const entry = this.#byId.get(id);
    return entry !== undefined && entry.hash.equals(hash) ? this.#callerOf(entry, nowMs) : null;
  }

  /** Whose token asked for a ticket with this tag; `null` when it no longer counts. */
  byTag(tag: string, nowMs: number): KnownCaller | null {
    const entry = this.#byTag.get(tag);
    return entry === undefined ? null : this.#callerOf(entry, nowMs);
  }

  /** Whether a token still has the secret with this tag. */
  hasSecret(tag: string): boolean {
    return this.#secretTags.has(tag);
  }

  #callerOf(entry: TokenEntry, nowMs: number): KnownCaller | null {
    const { id, hash, createdMs, expiresMs, grants } = entry;
    if (nowMs >= expiresMs || this.#revocations.has("id", id, createdMs)) return null;
    let caller = this.#callers.get(entry);
    if (caller === undefined) {
      caller = new KnownCaller(`token ${id}`, expiresMs, this.#grantsOf(grants), { kind: "token", id, hash });
      this.#callers.set(entry, caller);
    }
    return caller;
  }

  #grantsOf(grants: readonly Grant[]): Grants {
    const key = JSON.stringify(grants);
    const shared = this.#grants.get(key) ?? new Grants(grants, null);
    this.#grants.set(key, shared);
    return shared;
  }
}
