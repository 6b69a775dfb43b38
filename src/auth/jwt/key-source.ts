import type { JwtHeader } from "./compact.js";
import { selectKey } from "./key-set.js";
import type { Algorithm, VerificationKey } from "./verification-key.js";

/** What came of the search for a key. */
export type KeyAnswer = VerificationKey | "unknown" | "unavailable";

/** Where the keys of an issuer are. */
export interface KeySource {
  /** The key for a JWT; a promise only where keys must be fetched, which never rejects. */
  keyFor(header: JwtHeader, algs: readonly Algorithm[]): KeyAnswer | Promise<KeyAnswer>;
  /** Whether a key whose print `matches` is still one of the issuer's, as far as is known. */
  has(matches: (print: string) => boolean): boolean;
  /** Resolves, and never rejects, once more is known; `null` where keys are, or where none can be had now. */
  known(): Promise<void> | null;
}

/** Keys that stand in the auth file, or in a file beside it. */
export function fixedKeys(keys: readonly VerificationKey[]): KeySource {
  return {
    keyFor: (header, algs) => selectKey(keys, header, algs) ?? "unknown",
    has: (matches) => keys.some(({ print }) => matches(print)),
    known: () => null,
  };
}
