import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MAX_KEYS, parseKeySet, selectKey } from "../../../src/auth/jwt/key-set.js";
import { ALGORITHMS, secretKey } from "../../../src/auth/jwt/verification-key.js";
import { jwkOf, keySet, PAIRS, SECRET } from "../../helpers/jwt.js";

function keysOf(...jwks: readonly unknown[]) {
  const set = parseKeySet(JSON.stringify({ keys: jwks }));
  assert.ok(set.kind === "keys");
  return set.keys;
}

const ed = (kid?: string) => jwkOf(PAIRS.EdDSA.publicKey, kid === undefined ? {} : { kid });
const es = (kid: string) => jwkOf(PAIRS.ES256.publicKey, { kid });

describe("a set of keys", () => {
  test("has those that can verify, without the others", () => {
    const set = parseKeySet(keySet());
    assert.ok(set.kind === "keys");
    assert.deepEqual(
      set.keys.map(({ alg }) => alg),
      ["EdDSA", "ES256", "RS256"],
    );
    assert.deepEqual(keysOf({ kty: "oct", k: "AA" }, 1, { kty: "new" }), []);
  });

  for (const [title, text] of [
    ["no JSON", "<html>"],
    ["no list of keys", '{"keys":{}}'],
    ["a list alone", "[]"],
    ["too many keys", JSON.stringify({ keys: Array.from({ length: MAX_KEYS + 1 }, () => ({})) })],
  ] as const)
    test(`with ${title} is none`, () => assert.equal(parseKeySet(text).kind, "fault"));
});

describe("the key of a JWT", () => {
  for (const [title, keys, header, algs, alg] of [
    ["is the one that it names", [ed("a"), ed("b")], { alg: "EdDSA", kid: "b" }, ALGORITHMS, "EdDSA"],
    ["is the only one that fits", [ed("a"), es("b")], { alg: "EdDSA", kid: null }, ALGORITHMS, "EdDSA"],
    ["may share its name with one of another kind", [ed("a"), es("a")], { alg: "ES256", kid: "a" }, ALGORITHMS, "ES256"],
    ["is not guessed among two", [ed("a"), ed("b")], { alg: "EdDSA", kid: null }, ALGORITHMS, null],
    ["is not guessed among two of one name", [ed("a"), ed("a")], { alg: "EdDSA", kid: "a" }, ALGORITHMS, null],
    ["is not one without a name where it names one", [ed()], { alg: "EdDSA", kid: "a" }, ALGORITHMS, null],
    ["is not unknown", [ed("a")], { alg: "EdDSA", kid: "c" }, ALGORITHMS, null],
    ["is of the kind that it says", [ed("a")], { alg: "ES256", kid: "a" }, ALGORITHMS, null],
    ["is of a kind that the issuer may use", [ed("a")], { alg: "EdDSA", kid: "a" }, ["ES256"], null],
    ["is there even if it says none", [ed("a")], { alg: "none", kid: "a" }, ALGORITHMS, null],
    ["is not used as a secret", [jwkOf(PAIRS.RS256.publicKey, { kid: "a" })], { alg: "HS256", kid: "a" }, ALGORITHMS, null],
  ] as const)
    test(title, () => assert.equal(selectKey(keysOf(...keys), header, algs)?.alg ?? null, alg));

  test("is the secret, whatever it names", () => {
    assert.equal(selectKey([secretKey(SECRET)], { alg: "HS256", kid: "any" }, ["HS256"])?.alg, "HS256");
    assert.equal(selectKey([secretKey(SECRET)], { alg: "RS256", kid: null }, ["HS256", "RS256"]), null);
  });
});
