import assert from "node:assert/strict";
import { sign } from "node:crypto";
import { describe, test } from "node:test";
import { keyOfJwk, secretKey } from "../../../src/auth/jwt/verification-key.js";
import { parseJsonTree } from "../../../src/protocol/json/json-tree.js";
import { jwkOf, PAIRS, SECRET, signatureOf } from "../../helpers/jwt.js";
import { ecPair, ed448Pair, rsaPair, x25519Pair } from "../../helpers/key-pairs.js";

const { EdDSA, ES256, RS256 } = PAIRS;

function keyOf(jwk: unknown) {
  const tree = parseJsonTree(JSON.stringify(jwk));
  assert.ok(tree.kind !== "fault");
  return keyOfJwk(tree);
}

describe("a key", () => {
  for (const alg of ["EdDSA", "ES256", "RS256"] as const) {
    test(`for ${alg} verifies its own signatures and no others`, () => {
      const key = keyOf(jwkOf(PAIRS[alg].publicKey, { use: "sig", alg, key_ops: ["verify"], kid: "k", x5t: "other" }));
      const signature = Buffer.from(signatureOf(alg, "a.b"), "base64url");
      assert.equal(key?.alg, alg);
      assert.equal(key.kid, "k");
      assert.equal(key.verify("a.b", signature), true);
      assert.equal(key.verify("a.c", signature), false);
      for (const length of [0, 1, 31, 32, 63, 64, 65, 255, 256, 257]) assert.equal(key.verify("a.b", Buffer.alloc(length)), false);
      assert.equal(key.verify("a.b", Buffer.concat([signature, Buffer.alloc(1)])), false);
    });
  }

  test("that is a secret verifies HS256", () => {
    const signature = Buffer.from(signatureOf("HS256", "a.b"), "base64url");
    assert.equal(secretKey(SECRET).verify("a.b", signature), true);
    assert.equal(secretKey(SECRET).verify("a.b", signature.subarray(1)), false);
    assert.equal(secretKey(Buffer.alloc(32, 8)).verify("a.b", signature), false);
  });

  test("of ES256 takes no signature in DER", () => {
    const der = sign("sha256", Buffer.from("a.b"), ES256.privateKey);
    assert.equal(keyOf(jwkOf(ES256.publicKey))?.verify("a.b", der), false);
  });

  test("has the print of its numbers, not of its name", () => {
    assert.equal(keyOf(jwkOf(EdDSA.publicKey, { kid: "a" }))?.print, keyOf(jwkOf(EdDSA.publicKey, { kid: "b" }))?.print);
    assert.notEqual(keyOf(jwkOf(EdDSA.publicKey))?.print, keyOf(jwkOf(ES256.publicKey))?.print);
  });

  test("of which the private half is given is its public half", () => {
    assert.equal(keyOf(jwkOf(EdDSA.privateKey))?.print, keyOf(jwkOf(EdDSA.publicKey))?.print);
  });

  const p384 = ecPair("P-384").publicKey;
  const secp256k1 = ecPair("secp256k1").publicKey;
  const { x, y } = ES256.publicKey.export({ format: "jwk" });
  const { n } = RS256.publicKey.export({ format: "jwk" });
  for (const [title, jwk] of [
    ["no object", "a"],
    ["a secret in a public set", { kty: "oct", k: SECRET.toString("base64url"), alg: "HS256" }],
    ["a curve that no algorithm here has", jwkOf(p384)],
    ["the curve of coins", jwkOf(secp256k1)],
    ["another curve that calls itself P-256", jwkOf(secp256k1, { crv: "P-256" })],
    ["Ed448", jwkOf(ed448Pair().publicKey)],
    ["X25519, which can't sign", jwkOf(x25519Pair().publicKey)],
    ["a point beside the curve", { kty: "EC", crv: "P-256", x, y: x }],
    ["no point", { kty: "EC", crv: "P-256", x }],
    ["a point that is a number", { kty: "EC", crv: "P-256", x, y: 1 }],
    ["short RSA", jwkOf(rsaPair(1024).publicKey)],
    ["RSA with an exponent of 1", { kty: "RSA", n, e: "AQ" }],
    ["RSA with an even exponent", { kty: "RSA", n, e: "Ag" }],
    ["RSA for another algorithm", jwkOf(RS256.publicKey, { alg: "PS256" })],
    ["RSA that calls itself a secret", jwkOf(RS256.publicKey, { alg: "HS256" })],
    ["EC for another algorithm", jwkOf(ES256.publicKey, { alg: "EdDSA" })],
    ["an alg that is no text", jwkOf(ES256.publicKey, { alg: null })],
    ["one to encrypt with", jwkOf(RS256.publicKey, { use: "enc" })],
    ["one that may not verify", jwkOf(RS256.publicKey, { key_ops: ["encrypt"] })],
    ["operations that are no list", jwkOf(RS256.publicKey, { key_ops: "verify" })],
    ["a kid that is a number", jwkOf(RS256.publicKey, { kid: 1 })],
    ["no type", { ...jwkOf(RS256.publicKey), kty: undefined }],
    ["y without x", { kty: "EC", crv: "P-256", y }],
  ] as const)
    test(`is not made of ${title}`, () => assert.equal(keyOf(jwk), null));
});
