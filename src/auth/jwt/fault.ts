/** Why a JWT is refused. */
export type JwtFaultCode =
  | "malformed"
  | "too-long"
  | "crit"
  | "type"
  | "untrusted"
  | "keys-unavailable"
  | "over"
  | "too-early"
  | "claims"
  | "audience"
  | "subject"
  | "grants"
  | "too-much"
  | "revoked";

/** A JWT that is refused. */
export interface JwtFault {
  readonly kind: "fault";
  readonly code: JwtFaultCode;
}

/**
 * One sentence for whoever sent it. All that fails before the signature holds is `untrusted`: what is in the auth file
 * is not told, but that an issuer is trusted whose keys can't be had.
 */
const DETAILS: Readonly<Record<JwtFaultCode, string>> = {
  malformed: "The token is neither one of this server nor a JWT in the compact form.",
  "too-long": "The JWT is too long.",
  crit: "The JWT has a header field (crit or b64) that is not supported.",
  type: "The JWT's typ is not JWT or at+jwt.",
  untrusted: "The JWT is not from an issuer that is trusted here, or its signature does not hold.",
  "keys-unavailable": "The keys of the JWT's issuer can't be had at the moment.",
  over: "The JWT is over.",
  "too-early": "The JWT does not hold yet.",
  claims: "The JWT has no exp, or a claim of the wrong type.",
  audience: "The JWT is for another audience.",
  subject: "The JWT's sub can't be used in names of streams.",
  grants: "The JWT's authorization_details has a grant that is malformed.",
  "too-much": "The JWT's authorization_details has more patterns, or longer ones, than a JWT may.",
  revoked: "The JWT has been revoked.",
};

/** The refusal with `code`. */
export function jwtFault(code: JwtFaultCode): JwtFault {
  return { kind: "fault", code };
}

/** What a refusal says to whoever sent the JWT. */
export function detailOf({ code }: JwtFault): string {
  return DETAILS[code];
}
