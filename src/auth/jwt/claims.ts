// The rules for the claims of a JWT whose signature holds (RFC 7519, section 4.1; RFC 9396).

import type { JsonTree } from "../../protocol/json/json-tree.js";
import type { Grant } from "../rights/grant.js";
import { isOperation } from "../rights/operation.js";
import { faultOfPattern, isSub, patternFor } from "../rights/pattern.js";
import type { JsonMembers } from "./compact.js";
import { jwtFault } from "./fault.js";
import type { JwtFault } from "./fault.js";

/** How far the clocks of an issuer and of this server may differ, in milliseconds. */
export const JWT_LEEWAY_MS = 30_000;

/** Most grants in `authorization_details`, and most patterns in all of them. */
export const MAX_CLAIMED = 100;

/** Most text in these patterns, with `{sub}` filled in, in bytes of UTF-8. */
export const MAX_CLAIMED_BYTES = 2 * 1024;

/** Most segments after a `**` in these patterns: each may be compared with every segment of a name. */
export const MAX_CLAIMED_DEEP = 100;

/** The claims that are looked at here, `iss` aside, which has chosen the issuer. */
const CLAIMS_THAT_COUNT: readonly string[] = ["aud", "exp", "nbf", "iat", "sub", "jti", "authorization_details"];

const OUR_TYPE = "urn:streamdir:grant";

/** What a claim, a value and an object take of memory, about. */
const CLAIM_BYTES = 96;
const VALUE_BYTES = 64;
const OBJECT_BYTES = 256;

/** What an issuer's JWTs must be like. */
export interface ClaimRules {
  readonly aud: string;
  /** Whether the issuer may grant by `authorization_details`. */
  readonly trustGrants: boolean;
}

/** What a JWT says, once all of it was checked. */
export interface Claims {
  readonly kind: "claims";
  readonly sub: string | null;
  readonly jti: string | null;
  /** Milliseconds since 1970; `null` where it does not say. */
  readonly issuedAtMs: number | null;
  /** When it ends, the leeway included. */
  readonly endsAtMs: number;
  /** The grants of `authorization_details`; none where the issuer may not grant. */
  readonly grants: readonly Grant[];
}

/** Checks the claims; each rule is a function of its own below. Never throws. */
export function checkClaims(claims: JsonMembers, rules: ClaimRules, nowMs: number): Claims | JwtFault {
  const endsAtMs = endOf(claims, nowMs);
  if (typeof endsAtMs !== "number") return endsAtMs;
  const sub = subjectOf(claims);
  const issuedAtMs = issueOf(claims, nowMs);
  const jti = claims.get("jti")?.value;
  const grants = rules.trustGrants ? grantsOf(claims, typeof sub === "string" ? sub : null) : [];
  if (sub !== null && typeof sub === "object") return sub;
  if (issuedAtMs !== null && typeof issuedAtMs === "object") return issuedAtMs;
  if (jti !== undefined && jti.kind !== "string") return jwtFault("claims");
  if ("kind" in grants) return grants;
  const fault = faultOfStart(claims, nowMs) ?? faultOfAudience(claims, rules.aud);
  return fault ?? { kind: "claims", sub, jti: jti?.value ?? null, issuedAtMs, endsAtMs, grants };
}

/**
 * Those of a JWT's claims that count here, to be judged again by other rules: the same comes of them, and what else it
 * says may be large.
 */
export function keptClaims(claims: JsonMembers): JsonMembers {
  const kept = new Map([...claims].filter(([name]) => CLAIMS_THAT_COUNT.includes(name)));
  const details = kept.get("authorization_details");
  if (details === undefined) return kept;
  const { at, value } = details;
  const sub = subjectOf(claims);
  const isTaken = !("kind" in grantsOf(claims, typeof sub === "string" ? sub : null));
  const items = value.kind === "array" && isTaken ? value.items.filter((one) => typeOf(one) === OUR_TYPE) : null;
  // In place of what is refused stands what is refused, too.
  const ours: JsonTree = items === null ? { kind: "null", at } : { kind: "array", at, items };
  return kept.set("authorization_details", { at, value: ours });
}

/** What claims take of memory, about, in bytes. */
export function weightOf(claims: JsonMembers): number {
  let weight = 0;
  for (const { value } of claims.values()) weight += CLAIM_BYTES + weightOfValue(value);
  return weight;
}

function weightOfValue(value: JsonTree): number {
  if (value.kind === "object") return OBJECT_BYTES + weightOf(value.members);
  if (value.kind === "array") return value.items.reduce((sum, item) => sum + weightOfValue(item), VALUE_BYTES);
  return VALUE_BYTES + (value.kind === "string" ? value.value.length : 0);
}

/** `exp` must be there, and not be past. */
function endOf(claims: JsonMembers, nowMs: number): number | JwtFault {
  const expMs = timeOf(claims, "exp");
  if (typeof expMs !== "number") return expMs ?? jwtFault("claims");
  const endsAtMs = expMs + JWT_LEEWAY_MS;
  return nowMs < endsAtMs ? endsAtMs : jwtFault("over");
}

/** `nbf`, where it is there, must be past. */
function faultOfStart(claims: JsonMembers, nowMs: number): JwtFault | null {
  const startMs = timeOf(claims, "nbf");
  if (typeof startMs !== "number") return startMs;
  return startMs > nowMs + JWT_LEEWAY_MS ? jwtFault("too-early") : null;
}

/** `iat`, where it is there, must not lie in the future. */
function issueOf(claims: JsonMembers, nowMs: number): number | null | JwtFault {
  const issuedAtMs = timeOf(claims, "iat");
  if (typeof issuedAtMs !== "number") return issuedAtMs;
  return issuedAtMs > nowMs + JWT_LEEWAY_MS ? jwtFault("too-early") : issuedAtMs;
}

/** `aud` must be there, as a text or a list of texts, and name this server. */
function faultOfAudience(claims: JsonMembers, wanted: string): JwtFault | null {
  const aud = claims.get("aud")?.value;
  const named = aud?.kind === "array" ? aud.items : aud === undefined ? [] : [aud];
  if (!named.every((item) => item.kind === "string")) return jwtFault("claims");
  return named.some((item) => item.kind === "string" && item.value === wanted) ? null : jwtFault("audience");
}

/** `sub`, where it is there, must be safe in a pattern. */
function subjectOf(claims: JsonMembers): string | null | JwtFault {
  const sub = claims.get("sub")?.value;
  if (sub === undefined) return null;
  return sub.kind === "string" && isSub(sub.value) ? sub.value : jwtFault("subject");
}

/** Our grants in `authorization_details` must be well-formed; those of other types are for others. */
function grantsOf(claims: JsonMembers, sub: string | null): readonly Grant[] | JwtFault {
  const details = claims.get("authorization_details")?.value;
  if (details === undefined) return [];
  if (details.kind !== "array" || details.items.length > MAX_CLAIMED) return jwtFault("grants");
  const grants: Grant[] = [];
  for (const detail of details.items) {
    const type = typeOf(detail);
    if (detail.kind !== "object" || type === null) return jwtFault("grants");
    if (type !== OUR_TYPE) continue;
    const grant = grantOf(detail.members);
    if (grant === null) return jwtFault("grants");
    grants.push(grant);
  }
  const patterns = grants.flatMap(({ streams }) => streams);
  return isTooMuch(patterns, sub) ? jwtFault("too-much") : grants;
}

function typeOf(detail: JsonTree): string | null {
  const type = detail.kind === "object" ? detail.members.get("type")?.value : undefined;
  return type?.kind === "string" ? type.value : null;
}

/**
 * Whether the patterns of one JWT cost too much together. Its client may have chosen them: they are tried on the names
 * of all its requests, and stay in memory while it is remembered.
 */
function isTooMuch(patterns: readonly string[], sub: string | null): boolean {
  let [bytes, deep] = [0, 0];
  for (const pattern of patterns) {
    bytes += Buffer.byteLength(patternFor(pattern, sub) ?? pattern);
    const segments = pattern.split("/");
    const deepAt = segments.indexOf("**");
    if (deepAt >= 0) deep += segments.length - 1 - deepAt;
  }
  return patterns.length > MAX_CLAIMED || bytes > MAX_CLAIMED_BYTES || deep > MAX_CLAIMED_DEEP;
}

/** A field that is not known could narrow the grant: it is not taken without it. */
function grantOf(members: JsonMembers): Grant | null {
  if ([...members.keys()].some((key) => !["type", "streams", "allow"].includes(key))) return null;
  const streams = textsOf(members.get("streams")?.value);
  const allow = textsOf(members.get("allow")?.value)?.filter(isOperation);
  if (streams === null || allow === undefined || allow.length !== textsOf(members.get("allow")?.value)?.length)
    return null;
  if (streams.some((pattern) => faultOfPattern(pattern, true) !== null)) return null;
  return { streams, allow, rate: null };
}

function textsOf(list: JsonTree | undefined): string[] | null {
  if (list?.kind !== "array" || list.items.length === 0 || list.items.length > MAX_CLAIMED) return null;
  const texts = list.items.flatMap((item) => (item.kind === "string" ? [item.value] : []));
  return texts.length === list.items.length ? texts : null;
}

/** A NumericDate in milliseconds; `null` where it is not there. */
function timeOf(claims: JsonMembers, name: string): number | null | JwtFault {
  const time = claims.get(name)?.value;
  if (time === undefined) return null;
  const isTime = time.kind === "number" && time.value >= 0 && time.value <= Number.MAX_SAFE_INTEGER / 1000;
  return isTime ? time.value * 1000 : jwtFault("claims");
}
