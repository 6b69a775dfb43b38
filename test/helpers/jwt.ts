import { createHmac, sign, type KeyObject } from "node:crypto";
import { ecPair, ed25519Pair, rsaPair } from "./key-pairs.js";

/** When the tests' JWTs are looked at. */
export const JWT_NOW_MS = Date.UTC(2026, 0, 1);
const NOW_S = JWT_NOW_MS / 1000;

/** A secret for HS256. */
export const SECRET = Buffer.alloc(32, 7);

/** Pairs of keys, made once for all tests of a process. */
export const PAIRS = { EdDSA: ed25519Pair(), ES256: ecPair("P-256"), RS256: rsaPair(2048) } as const;

/** The public key of a pair as a JWK, with `more` members. */
export function jwkOf(key: KeyObject, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { ...key.export({ format: "jwk" }), ...more };
}

/** A set of the three public keys; the `kid` of each is its algorithm. */
export function keySet(): string {
  return JSON.stringify({ keys: Object.entries(PAIRS).map(([kid, { publicKey }]) => jwkOf(publicKey, { kid })) });
}

/** `value` as a part of a JWT. */
export function part(value: unknown): string {
  return Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
}

/** A signature of `signed` as `alg` has it. */
export function signatureOf(alg: string, signed: string): string {
  if (alg === "HS256") return createHmac("sha256", SECRET).update(signed).digest("base64url");
  const data = Buffer.from(signed);
  if (alg === "EdDSA") return sign(null, data, PAIRS.EdDSA.privateKey).toString("base64url");
  if (alg === "RS256") return sign("sha256", data, PAIRS.RS256.privateKey).toString("base64url");
  return sign("sha256", data, { key: PAIRS.ES256.privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url");
}

/** Claims that hold; a test overrides some, and `undefined` takes one away. */
export function claimsWith(more: Record<string, unknown> = {}): Record<string, unknown> {
  return { iss: "https://id.example", aud: "streams", sub: "alice", iat: NOW_S - 10, exp: NOW_S + 600, ...more };
}

/** A JWT of `alg` with these claims, and `header` over the usual one. */
export function jwtOf(alg: string, claims: unknown = claimsWith(), header: Record<string, unknown> = {}): string {
  const signed = `${part({ alg, typ: "JWT", kid: alg, ...header })}.${part(claims)}`;
  return `${signed}.${signatureOf(alg, signed)}`;
}
