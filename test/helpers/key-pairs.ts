import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";

/** A public key and its private one. */
export interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

const SPKI = { type: "spki", format: "der" } as const;
const PKCS8 = { type: "pkcs8", format: "der" } as const;

/** A pair on an elliptic curve of NIST's, or the like. */
export function ecPair(namedCurve: string): KeyPair {
  return parsed(generateKeyPairSync("ec", { namedCurve, publicKeyEncoding: SPKI, privateKeyEncoding: PKCS8 }));
}

export function rsaPair(modulusLength: number): KeyPair {
  return parsed(generateKeyPairSync("rsa", { modulusLength, publicKeyEncoding: SPKI, privateKeyEncoding: PKCS8 }));
}

export function ed25519Pair(): KeyPair {
  return parsed(generateKeyPairSync("ed25519", { publicKeyEncoding: SPKI, privateKeyEncoding: PKCS8 }));
}

export function ed448Pair(): KeyPair {
  return parsed(generateKeyPairSync("ed448", { publicKeyEncoding: SPKI, privateKeyEncoding: PKCS8 }));
}

export function x25519Pair(): KeyPair {
  return parsed(generateKeyPairSync("x25519", { publicKeyEncoding: SPKI, privateKeyEncoding: PKCS8 }));
}

/**
 * The keys anew. Those that Node 20 makes share a lock with what made them: where that is collected while one of them is
 * exported, the process stands still for good.
 */
function parsed({ publicKey, privateKey }: { readonly publicKey: Buffer; readonly privateKey: Buffer }): KeyPair {
  return { publicKey: createPublicKey({ key: publicKey, ...SPKI }), privateKey: createPrivateKey({ key: privateKey, ...PKCS8 }) };
}
