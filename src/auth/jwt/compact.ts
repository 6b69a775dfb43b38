// Takes a JWS in the compact form apart (RFC 7515, section 3.1), before anything in it is believed.

import { isUtf8 } from "node:buffer";
import { decodeBase64Url } from "../../protocol/base64url.js";
import { parseJsonTree } from "../../protocol/json/json-tree.js";
import type { JsonMember, JsonTree } from "../../protocol/json/json-tree.js";
import { jwtFault } from "./fault.js";
import type { JwtFault } from "./fault.js";

/** Longest JWT, in characters. */
export const MAX_JWT_CHARS = 8 * 1024;

/** The members of a JSON object. */
export type JsonMembers = ReadonlyMap<string, JsonMember>;

/** What a header may say here. */
export interface JwtHeader {
  readonly alg: string;
  /** `null` where it names no key. */
  readonly kid: string | null;
}

/** A JWT whose signature nobody has looked at yet. */
export interface CompactJwt {
  readonly kind: "compact";
  readonly header: JwtHeader;
  readonly claims: JsonMembers;
  /** What is signed: the text before the last dot. */
  readonly signed: string;
  readonly signature: Buffer;
}

/** Takes a JWT apart; strict, and never throws. */
export function parseCompact(text: string): CompactJwt | JwtFault {
  if (text.length > MAX_JWT_CHARS) return jwtFault("too-long");
  const [encodedHeader = "", encodedClaims = "", encodedSignature, ...more] = text.split(".");
  const signature = encodedSignature === undefined || more.length > 0 ? null : decodeBase64Url(encodedSignature);
  const headerMembers = parseObject(encodedHeader);
  const claims = parseObject(encodedClaims);
  if (signature === null || headerMembers === null || claims === null) return jwtFault("malformed");
  const header = readHeader(headerMembers);
  if (header.kind === "fault") return header;
  return { kind: "compact", header, claims, signed: `${encodedHeader}.${encodedClaims}`, signature };
}

function parseObject(encoded: string): JsonMembers | null {
  const bytes = decodeBase64Url(encoded);
  // A key that is there twice is refused: two readers could take two different ones.
  const tree = bytes !== null && isUtf8(bytes) ? parseJsonTree(bytes.toString()) : null;
  return tree?.kind === "object" ? tree.members : null;
}

function readHeader(members: JsonMembers): (JwtHeader & { readonly kind: "header" }) | JwtFault {
  if (members.has("crit") || members.has("b64")) return jwtFault("crit");
  const type = members.get("typ")?.value;
  if (type !== undefined && !isTypeOfJwt(type)) return jwtFault("type");
  const alg = members.get("alg")?.value;
  const kid = members.get("kid")?.value;
  if (alg?.kind !== "string" || (kid !== undefined && kid.kind !== "string")) return jwtFault("malformed");
  return { kind: "header", alg: alg.value, kid: kid?.value ?? null };
}

/** RFC 7519, section 5.1, and RFC 9068: media types, so in any case and with or without their prefix. */
function isTypeOfJwt(type: JsonTree): boolean {
  return type.kind === "string" && /^(application\/)?(jwt|at\+jwt)$/i.test(type.value);
}
