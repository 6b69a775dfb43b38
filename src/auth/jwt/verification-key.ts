// Keys that JWTs are verified with: each has the one algorithm that it is for.

import { createHash, createHmac, createPublicKey, timingSafeEqual, verify } from "node:crypto";
import type { JsonWebKey, KeyObject } from "node:crypto";
import type { JsonTree } from "../../protocol/json/json-tree.js";
import type { JsonMembers } from "./compact.js";
import { hasSmallOrder } from "./small-order.js";

/** The algorithms that an issuer can be given. `none` is not among them. */
export const ALGORITHMS = ["EdDSA", "ES256", "RS256", "HS256"] as const;

/** An algorithm of signatures (RFC 7518, RFC 8037). */
export type Algorithm = (typeof ALGORITHMS)[number];

/** Fewest bytes of a secret that signs: as many as the hash has (RFC 7518, section 3.2). */
export const MIN_SECRET_BYTES = 32;

const ED25519_BYTES = 32;
const MIN_RSA_BITS = 2048;
/** A signature of a longer key takes too long to verify. */
const MAX_RSA_BITS = 8192;

/** A key, with the algorithm that its type decides. */
export interface VerificationKey {
  /** `null` for one that has none, and for a secret, which is the only key of its issuer. */
  readonly kid: string | null;
  readonly alg: Algorithm;
  /** Whether the `kid` of a header says nothing about it. */
  readonly fitsAnyKid: boolean;
  /** Names the key itself, whatever its `kid`: two with the same print verify the same. */
  readonly print: string;
  /** Whether `signature` is this key's over `signed`. Never throws. */
  verify(signed: string, signature: Buffer): boolean;
}

/** The key that a secret is, for HS256. */
export function secretKey(secret: Buffer): VerificationKey {
  return {
    kid: null,
    alg: "HS256",
    fitsAnyKid: true,
    print: printOf("HS256", secret),
    verify(signed, signature) {
      const expected = createHmac("sha256", secret).update(signed).digest();
      return signature.length === expected.length && timingSafeEqual(signature, expected);
    },
  };
}

/**
 * The key that a JWK is (RFC 7517); `null` for one that can't verify a JWT here: of another type or curve, too short or
 * too long, for another algorithm or use, or damaged. A secret (`oct`) is never taken from a set of public keys.
 */
export function keyOfJwk(jwk: JsonTree): VerificationKey | null {
  if (jwk.kind !== "object") return null;
  const kind = KINDS.find(({ kty, crv }) => kty === textOf(jwk.members, "kty") && crv === textOf(jwk.members, "crv"));
  const kid = jwk.members.get("kid")?.value;
  if (kind === undefined || !isForVerifying(jwk.members, kind.alg) || (kid !== undefined && kid.kind !== "string"))
    return null;
  const key = importKey(jwk.members, kind);
  if (key === null || !kind.isFit(key)) return null;
  const print = printOf(kind.alg, key.export({ type: "spki", format: "der" }));
  return {
    kid: kid?.value ?? null,
    alg: kind.alg,
    fitsAnyKid: false,
    print,
    verify: (signed, signature) => holds(() => kind.verify(Buffer.from(signed), key, signature)),
  };
}

interface Kind {
  readonly alg: Algorithm;
  readonly kty: string;
  readonly crv: string | null;
  /** The members that make the public key: no other is looked at. */
  readonly parts: readonly string[];
  isFit(key: KeyObject): boolean;
  verify(signed: Buffer, key: KeyObject, signature: Buffer): boolean;
}

const KINDS: readonly Kind[] = [
  {
    alg: "EdDSA",
    kty: "OKP",
    crv: "Ed25519",
    parts: ["x"],
    isFit: isFitEd25519,
    verify: (signed, key, signature) => verify(null, signed, key, signature),
  },
  {
    alg: "ES256",
    kty: "EC",
    crv: "P-256",
    parts: ["x", "y"],
    isFit: (key) => key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1",
    verify: (signed, key, signature) => verify("sha256", signed, { key, dsaEncoding: "ieee-p1363" }, signature),
  },
  {
    alg: "RS256",
    kty: "RSA",
    crv: null,
    parts: ["n", "e"],
    isFit: isFitRsa,
    verify: (signed, key, signature) => verify("sha256", signed, key, signature),
  },
];

/** With a key of small order, signatures can be made without the private one. The key is the end of its DER. */
function isFitEd25519(key: KeyObject): boolean {
  if (key.asymmetricKeyType !== "ed25519") return false;
  return !hasSmallOrder(key.export({ type: "spki", format: "der" }).subarray(-ED25519_BYTES));
}

function isFitRsa(key: KeyObject): boolean {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  // With an exponent of 1 anything would be a signature of itself.
  const isExponent = publicExponent >= 3n && publicExponent < 2n ** 32n && publicExponent % 2n === 1n;
  return modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS && isExponent;
}

function textOf(members: JsonMembers, name: string): string | null {
  const value = members.get(name)?.value;
  return value?.kind === "string" ? value.value : null;
}

/** Whether `alg`, `use` and `key_ops` allow it, where they are there. */
function isForVerifying(members: JsonMembers, alg: Algorithm): boolean {
  if (members.has("alg") && textOf(members, "alg") !== alg) return false;
  if (members.has("use") && textOf(members, "use") !== "sig") return false;
  const operations = members.get("key_ops")?.value;
  if (operations === undefined) return true;
  return (
    operations.kind === "array" && operations.items.some((item) => item.kind === "string" && item.value === "verify")
  );
}

function importKey(members: JsonMembers, { kty, crv, parts }: Kind): KeyObject | null {
  const jwk: JsonWebKey = { kty, ...(crv === null ? {} : { crv }) };
  for (const part of parts) jwk[part] = textOf(members, part) ?? "";
  try {
    return createPublicKey({ key: jwk, format: "jwk" });
  } catch {
    return null; // numbers that are no key: a point beside the curve, say
  }
}

function holds(check: () => boolean): boolean {
  try {
    return check();
  } catch {
    return false; // a signature of a form that the algorithm does not have
  }
}

function printOf(alg: Algorithm, key: Buffer): string {
  return createHash("sha256").update(alg).update(key).digest("base64url");
}
