// A set of keys (JWKS; RFC 7517, section 5), and which of them a JWT is verified with.

import { parseJsonTree } from "../../protocol/json/json-tree.js";
import type { JwtHeader } from "./compact.js";
import { keyOfJwk } from "./verification-key.js";
import type { Algorithm, VerificationKey } from "./verification-key.js";

/** Largest set of keys, in bytes. */
export const MAX_KEY_SET_BYTES = 256 * 1024;

/** Most keys that are looked at in a set. */
export const MAX_KEYS = 100;

/** The keys of a set that can verify a JWT, or why it is none: words that follow what it is, with their place. */
export type KeySetResult =
  | { readonly kind: "keys"; readonly keys: readonly VerificationKey[] }
  | { readonly kind: "fault"; readonly at: number; readonly words: string };

/** Reads a set of keys. Those that can't verify a JWT here are left out, as RFC 7517 has it. Never throws. */
export function parseKeySet(text: string): KeySetResult {
  const tree = parseJsonTree(text);
  if (tree.kind === "fault") return tree;
  const keys = tree.kind === "object" ? tree.members.get("keys")?.value : undefined;
  if (keys?.kind !== "array") return { kind: "fault", at: tree.at, words: 'must be an object with a list "keys"' };
  if (keys.items.length > MAX_KEYS) return { kind: "fault", at: keys.at, words: `has more than ${MAX_KEYS} keys` };
  return { kind: "keys", keys: keys.items.flatMap((jwk) => keyOfJwk(jwk) ?? []) };
}

/**
 * The key that the header names and `algs` allows. The key decides the algorithm; the header must say the same. `null`
 * where there is none, or where more than one could be meant.
 */
export function selectKey(
  keys: readonly VerificationKey[],
  { alg, kid }: JwtHeader,
  algs: readonly Algorithm[],
): VerificationKey | null {
  const fitting = keys.filter(
    (key) => key.alg === alg && algs.includes(key.alg) && (kid === null || key.fitsAnyKid || key.kid === kid),
  );
  return fitting.length === 1 ? (fitting[0] ?? null) : null;
}
