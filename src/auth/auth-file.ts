// The auth file: who may do what (docs/auth.md, The auth file). Read strictly; the first fault counts.

import { parseRate } from "../net/rate.js";
import type { Rate } from "../net/rate.js";
import { decodeBase64Url } from "../protocol/base64url.js";
import { parseTimestamp } from "../protocol/timestamp.js";
import { AUTH_BOUNDS } from "./bounds.js";
import { checkedDocument, refuseTwice, short } from "./checked-json.js";
import type { Checked, SourceText } from "./checked-json.js";
import { ALGORITHMS, MIN_SECRET_BYTES } from "./jwt/verification-key.js";
import type { Algorithm } from "./jwt/verification-key.js";
import type { Grant } from "./rights/grant.js";
import { isOperation, OPERATIONS } from "./rights/operation.js";
import type { Operation } from "./rights/operation.js";
import { faultOfPattern, MAX_PATTERN_BYTES } from "./rights/pattern.js";

/** The names of tokens and of ticket keys. */
export const ID_PATTERN = /^[A-Za-z0-9-]{1,64}$/;

/** A token, known by the hash of its secret. */
export interface TokenEntry {
  readonly id: string;
  /** SHA-256 of the 43 characters of the secret. */
  readonly hash: Buffer;
  /** `null` where the file does not say. */
  readonly createdMs: number | null;
  /** `Infinity` where it does not end. */
  readonly expiresMs: number;
  readonly grants: readonly Grant[];
}

/** Where the keys of an issuer are. Paths are as they stand in the file. */
export type KeyPlace =
  | { readonly kind: "secret"; readonly secret: Buffer }
  | { readonly kind: "file"; readonly path: string; readonly entry: Checked }
  | { readonly kind: "url"; readonly url: string; readonly caPath: string | null; readonly entry: Checked };

/** Who may sign JWTs. */
export interface IssuerEntry {
  readonly iss: string;
  readonly aud: string;
  readonly algs: readonly Algorithm[];
  readonly keys: KeyPlace;
  readonly grants: readonly Grant[];
  readonly trustGrants: boolean;
}

/** A secret that signs tickets. */
export interface TicketKeyEntry {
  readonly id: string;
  readonly secret: Buffer;
  /** What it may sign for; `null` where all. */
  readonly grants: readonly Grant[] | null;
}

/** Something that no longer counts. */
export interface RevocationEntry {
  readonly kind: "id" | "jti" | "sub";
  readonly value: string;
  /** Only what was made before counts no longer; `Infinity` for all. */
  readonly beforeMs: number;
}

/** All that an auth file says. */
export interface AuthFile {
  readonly tokens: readonly TokenEntry[];
  readonly issuers: readonly IssuerEntry[];
  /** `null` where certificates say nothing. */
  readonly certificates: readonly Grant[] | null;
  readonly ticketKeys: readonly TicketKeyEntry[];
  /** Empty where nobody may do anything without a credential. */
  readonly public: readonly Grant[];
  readonly revoked: readonly RevocationEntry[];
}

/** Reads the text of an auth file; throws `AuthFileError`. Key sets that it names are not read here. */
export function parseAuthFile(source: SourceText): AuthFile {
  const members = checkedDocument(source).members([
    "tokens",
    "issuers",
    "certificates",
    "ticketKeys",
    "public",
    "revoked",
  ]);
  const certificates = members.optional("certificates")?.members(["grants"]).required("grants") ?? null;
  return {
    tokens: entriesOf(members.optional("tokens"), AUTH_BOUNDS.tokens, tokenOf, ({ id }) => id),
    issuers: entriesOf(members.optional("issuers"), AUTH_BOUNDS.issuers, issuerOf, ({ iss }) => iss),
    certificates: certificates === null ? null : grantsOf(certificates, true),
    ticketKeys: entriesOf(members.optional("ticketKeys"), AUTH_BOUNDS.ticketKeys, ticketKeyOf, ({ id }) => id),
    public: optionalGrants(members.optional("public"), false),
    revoked: members.optional("revoked")?.list(AUTH_BOUNDS.revocations).map(revocationOf) ?? [],
  };
}

function entriesOf<T>(
  list: Checked | null,
  max: number,
  read: (entry: Checked) => T,
  keyOf: (entry: T) => string,
): readonly T[] {
  if (list === null) return [];
  const items = list.list(max);
  const entries = items.map(read);
  refuseTwice(items, entries, keyOf);
  return entries;
}

function tokenOf(entry: Checked): TokenEntry {
  const members = entry.members(["id", "sha256", "created", "expires", "grants"]);
  const created = members.optional("created");
  const expires = members.optional("expires");
  return {
    id: idOf(members.required("id")),
    hash: hashOf(members.required("sha256")),
    createdMs: created === null ? null : timeOf(created),
    expiresMs: expires === null ? Infinity : timeOf(expires),
    grants: grantsOf(members.required("grants"), false),
  };
}

function issuerOf(entry: Checked): IssuerEntry {
  const members = entry.members(["iss", "aud", "algs", "jwks", "jwksCa", "secret", "grants", "trustGrants"]);
  const algs = members.required("algs");
  const issuer = {
    iss: members.required("iss").text(AUTH_BOUNDS.textChars),
    aud: members.required("aud").text(AUTH_BOUNDS.textChars),
    algs: algs.list(ALGORITHMS.length).map(algorithmOf),
    grants: optionalGrants(members.optional("grants"), true),
    trustGrants: members.optional("trustGrants")?.boolean() ?? false,
  };
  const jwks = members.optional("jwks");
  const jwksCa = members.optional("jwksCa");
  const secret = members.optional("secret");
  if ((jwks === null) === (secret === null)) throw entry.fault('needs either "jwks", or "secret" for HS256');
  const isSecret = issuer.algs.includes("HS256");
  if (isSecret !== (secret !== null) || (isSecret && issuer.algs.length > 1))
    throw algs.fault('must be ["HS256"] with "secret", and EdDSA, ES256 or RS256 with "jwks"');
  if (issuer.grants.length === 0 && !issuer.trustGrants) throw entry.fault('needs "grants", or "trustGrants": true');
  if (jwks !== null) return { ...issuer, keys: keyPlaceOf(jwks, jwksCa) };
  if (jwksCa !== null) throw jwksCa.fault(CA_WITHOUT_URL);
  return { ...issuer, keys: { kind: "secret", secret: secretOf(secret ?? entry) } };
}

const CA_WITHOUT_URL = "belongs to a jwks that is an https URL";

function keyPlaceOf(jwks: Checked, jwksCa: Checked | null): KeyPlace {
  const written = jwks.text(AUTH_BOUNDS.textChars);
  const caPath = jwksCa?.text(AUTH_BOUNDS.textChars) ?? null;
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(written)) {
    if (jwksCa !== null) throw jwksCa.fault(CA_WITHOUT_URL);
    return { kind: "file", path: written, entry: jwks };
  }
  const url = URL.canParse(written) ? new URL(written) : null;
  if (url?.protocol !== "https:" || url.username !== "" || url.password !== "")
    throw jwks.fault("must be a file, or an https URL without a user name");
  return { kind: "url", url: url.href, caPath, entry: jwksCa ?? jwks };
}

function ticketKeyOf(entry: Checked): TicketKeyEntry {
  const members = entry.members(["id", "secret", "grants"]);
  const grants = members.optional("grants");
  return {
    id: idOf(members.required("id")),
    secret: secretOf(members.required("secret")),
    grants: grants === null ? null : grantsOf(grants, false),
  };
}

function revocationOf(entry: Checked): RevocationEntry {
  const members = entry.members(["id", "jti", "sub", "before"]);
  const before = members.optional("before");
  const named = (["id", "jti", "sub"] as const).flatMap((kind) => {
    const member = members.optional(kind);
    return member === null ? [] : [{ kind, value: member.text(AUTH_BOUNDS.textChars) }];
  });
  const [only, second] = named;
  if (only === undefined || second !== undefined)
    throw entry.fault('needs one of "id" (of a token), "jti" and "sub" (of JWTs)');
  return { ...only, beforeMs: before === null ? Infinity : timeOf(before) };
}

function optionalGrants(list: Checked | null, hasSub: boolean): readonly Grant[] {
  return list === null ? [] : grantsOf(list, hasSub);
}

function grantsOf(list: Checked, hasSub: boolean): readonly Grant[] {
  return list.list(AUTH_BOUNDS.grants).map((entry) => {
    const members = entry.members(["streams", "allow", "rate"]);
    const rate = members.optional("rate");
    return {
      streams: members
        .required("streams")
        .list(AUTH_BOUNDS.patterns)
        .map((pattern) => patternOf(pattern, hasSub)),
      allow: members.required("allow").list(OPERATIONS.length).map(operationOf),
      rate: rate === null ? null : rateOf(rate),
    };
  });
}

function patternOf(entry: Checked, hasSub: boolean): string {
  const pattern = entry.text(MAX_PATTERN_BYTES);
  const fault = faultOfPattern(pattern, hasSub);
  if (fault !== null) throw entry.fault(fault);
  return pattern;
}

function operationOf(entry: Checked): Operation {
  const text = entry.text(AUTH_BOUNDS.textChars);
  if (!isOperation(text)) throw entry.fault(`is ${short(text)}; operations are ${OPERATIONS.join(", ")}`);
  return text;
}

function algorithmOf(entry: Checked): Algorithm {
  const text = entry.text(AUTH_BOUNDS.textChars);
  const algorithm = ALGORITHMS.find((known) => known === text);
  if (algorithm === undefined) throw entry.fault(`is ${short(text)}; algorithms are ${ALGORITHMS.join(", ")}`);
  return algorithm;
}

function rateOf(entry: Checked): Rate {
  const rate = parseRate(entry.text(AUTH_BOUNDS.textChars));
  if (rate === null) throw entry.fault("must be REQUESTS or REQUESTS,BYTES a second, like 200 or 200,4MiB");
  return rate;
}

function idOf(entry: Checked): string {
  const id = entry.text(AUTH_BOUNDS.textChars);
  if (!ID_PATTERN.test(id)) throw entry.fault("must be 1 to 64 letters, digits and -");
  return id;
}

function hashOf(entry: Checked): Buffer {
  const text = entry.text(AUTH_BOUNDS.textChars);
  const hash = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, "hex") : decodeBase64Url(text);
  if (hash?.length !== 32) throw entry.fault("must be a SHA-256: 64 hexadecimal digits, or 43 characters of base64url");
  return hash;
}

/** A refusal never repeats a secret, not even a wrong one. */
function secretOf(entry: Checked): Buffer {
  const secret = decodeBase64Url(entry.text(AUTH_BOUNDS.textChars));
  if (secret === null || secret.length < MIN_SECRET_BYTES)
    throw entry.fault(`must be base64url, without padding, of ${MIN_SECRET_BYTES} bytes or more`);
  return secret;
}

function timeOf(entry: Checked): number {
  const time = parseTimestamp(entry.text(AUTH_BOUNDS.textChars));
  if (time === null) throw entry.fault("must be a time like 2027-01-01T00:00:00Z");
  return time;
}
