// Verifies a JWT: by whom, with which key, and what it says.

import { checkClaims, keptClaims, weightOf } from "./claims.js";
import type { ClaimRules, Claims } from "./claims.js";
import { parseCompact } from "./compact.js";
import type { CompactJwt, JsonMembers } from "./compact.js";
import { jwtFault } from "./fault.js";
import type { JwtFault } from "./fault.js";
import type { KeyAnswer, KeySource } from "./key-source.js";
import type { Algorithm } from "./verification-key.js";

/** Who may sign, with what. */
export interface Issuer extends ClaimRules {
  readonly iss: string;
  readonly algs: readonly Algorithm[];
  readonly keys: KeySource;
}

/** What stays of a JWT after it was verified, to judge it by other rules later; its signature is not in it. */
export interface VerifiedJwt {
  readonly iss: string;
  readonly alg: Algorithm;
  /** The print of the key that signed it. */
  readonly keyPrint: string;
  /** Those that count here: what else it says may be large. */
  readonly members: JsonMembers;
  /** What these take of memory, about, in bytes. */
  readonly weight: number;
}

/** A JWT that holds. */
export interface JwtAnswer<I extends Issuer> {
  readonly kind: "verified";
  readonly issuer: I;
  readonly claims: Claims;
  readonly jwt: VerifiedJwt;
}

/** Issuers by their names. */
export type Issuers<I extends Issuer> = ReadonlyMap<string, I>;

/**
 * Verifies a JWT. The unverified `iss` only chooses whose keys are tried. A promise only where keys must be fetched,
 * and none that rejects; never throws.
 */
export function verifyJwt<I extends Issuer>(
  text: string,
  issuers: Issuers<I>,
  nowMs: number,
): JwtAnswer<I> | JwtFault | Promise<JwtAnswer<I> | JwtFault> {
  const compact = parseCompact(text);
  if (compact.kind === "fault") return compact;
  const iss = compact.claims.get("iss")?.value;
  const issuer = iss?.kind === "string" ? issuers.get(iss.value) : undefined;
  if (issuer === undefined) return jwtFault("untrusted");
  const key = issuer.keys.keyFor(compact.header, issuer.algs);
  if (key instanceof Promise) return key.then((found) => verifyWith(compact, issuer, found, nowMs));
  return verifyWith(compact, issuer, key, nowMs);
}

/** What a verified JWT comes to under the rules of now, without its signature; a refusal when it no longer holds. */
export function judgeAgain<I extends Issuer>(
  jwt: VerifiedJwt,
  issuers: Issuers<I>,
  nowMs: number,
): JwtAnswer<I> | JwtFault {
  const issuer = issuers.get(jwt.iss);
  const isTrusted =
    issuer !== undefined && issuer.algs.includes(jwt.alg) && issuer.keys.has((print) => print === jwt.keyPrint);
  if (!isTrusted) return jwtFault("untrusted");
  const claims = checkClaims(jwt.members, issuer, nowMs);
  return claims.kind === "fault" ? claims : { kind: "verified", issuer, claims, jwt };
}

function verifyWith<I extends Issuer>(
  { claims: members, signed, signature }: CompactJwt,
  issuer: I,
  key: KeyAnswer,
  nowMs: number,
): JwtAnswer<I> | JwtFault {
  if (key === "unavailable") return jwtFault("keys-unavailable");
  if (key === "unknown" || !key.verify(signed, signature)) return jwtFault("untrusted");
  const claims = checkClaims(members, issuer, nowMs);
  if (claims.kind === "fault") return claims;
  const kept = keptClaims(members);
  return {
    kind: "verified",
    issuer,
    claims,
    jwt: { iss: issuer.iss, alg: key.alg, keyPrint: key.print, members: kept, weight: weightOf(kept) },
  };
}
