import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { parseKeySet } from "../../../src/auth/jwt/key-set.js";
import { fixedKeys, type KeySource } from "../../../src/auth/jwt/key-source.js";
import { judgeAgain, verifyJwt, type Issuer } from "../../../src/auth/jwt/verify.js";
import { secretKey, type Algorithm } from "../../../src/auth/jwt/verification-key.js";
import { claimsWith, jwtOf, JWT_NOW_MS, keySet, PAIRS, part, SECRET } from "../../helpers/jwt.js";

const SET = parseKeySet(keySet());
const PUBLIC_KEYS = fixedKeys(SET.kind === "keys" ? SET.keys : []);

function issuers(algs: readonly Algorithm[], keys: KeySource = PUBLIC_KEYS): ReadonlyMap<string, Issuer> {
  return new Map([["https://id.example", { iss: "https://id.example", aud: "streams", algs, keys, trustGrants: false }]]);
}

const ALL = issuers(["EdDSA", "ES256", "RS256", "HS256"]);
const SECRETS = issuers(["HS256"], fixedKeys([secretKey(SECRET)]));

function outcome(text: string, known = ALL): unknown {
  const answer = verifyJwt(text, known, JWT_NOW_MS);
  assert.ok(!(answer instanceof Promise));
  return answer.kind === "fault" ? answer.code : answer.kind;
}

describe("a JWT", () => {
  for (const alg of ["EdDSA", "ES256", "RS256"])
    test(`with ${alg} of its issuer's key holds`, () => assert.equal(outcome(jwtOf(alg)), "verified"));
  test("with HS256 of its issuer's secret holds", () => assert.equal(outcome(jwtOf("HS256"), SECRETS), "verified"));
  test("without a kid holds if one key fits", () => assert.equal(outcome(jwtOf("EdDSA", claimsWith(), { kid: undefined })), "verified"));

  const [, claims = "", signature = ""] = jwtOf("EdDSA").split(".");
  const pem = PAIRS.RS256.publicKey.export({ type: "spki", format: "pem" });
  const confused = `${part({ alg: "HS256", kid: "RS256" })}.${part(claimsWith())}`;
  const hmacOfPublicKey = createHmac("sha256", pem).update(confused).digest("base64url");
  for (const [title, text, known] of [
    ["alg none and no signature", `${part({ alg: "none" })}.${part(claimsWith())}.`, ALL],
    ["alg None", jwtOf("EdDSA", claimsWith(), { alg: "None", kid: undefined }), ALL],
    ["HS256 with the public RSA key as the secret", `${confused}.${hmacOfPublicKey}`, ALL],
    ["HS256 where only public keys are", jwtOf("HS256"), ALL],
    ["another algorithm than its key has", jwtOf("EdDSA", claimsWith(), { alg: "ES256" }), ALL],
    ["a key's name and another key's signature", jwtOf("ES256", claimsWith(), { kid: "EdDSA" }), ALL],
    ["an algorithm that the issuer is not given", jwtOf("EdDSA"), issuers(["ES256"])],
    ["an unknown kid", jwtOf("EdDSA", claimsWith(), { kid: "other" }), ALL],
    [
      "a key of its own in its header",
      jwtOf("EdDSA", claimsWith(), { kid: "x", jwk: PAIRS.EdDSA.publicKey.export({ format: "jwk" }) }),
      ALL,
    ],
    ["another issuer", jwtOf("EdDSA", claimsWith({ iss: "https://other.example" })), ALL],
    ["no issuer", jwtOf("EdDSA", claimsWith({ iss: undefined })), ALL],
    ["an issuer that every object has", jwtOf("EdDSA", claimsWith({ iss: "__proto__" })), ALL],
    ["an issuer that is a list", jwtOf("EdDSA", claimsWith({ iss: ["https://id.example"] })), ALL],
    ["no signature", jwtOf("EdDSA").replace(/[^.]*$/, ""), ALL],
    ["a signature of other claims", `${part({ alg: "EdDSA", kid: "EdDSA" })}.${claims}.${signature}`, ALL],
    ["other claims", jwtOf("EdDSA").replace(claims, part(claimsWith({ sub: "root" }))), ALL],
  ] as const)
    test(`with ${title} is not trusted`, () => assert.equal(outcome(text, known), "untrusted"));

  test("is judged by its claims only after its signature", () => {
    const over = jwtOf("EdDSA", claimsWith({ exp: 1 }));
    assert.equal(outcome(over), "over");
    assert.equal(outcome(over.replace(/[^.]*$/, "")), "untrusted");
  });

  test("whose issuer's keys can't be had says so", async () => {
    const answer = await verifyJwt(
      jwtOf("EdDSA"),
      issuers(["EdDSA"], { keyFor: () => Promise.resolve("unavailable"), has: () => true, known: () => null }),
      JWT_NOW_MS,
    );
    assert.deepEqual(answer, { kind: "fault", code: "keys-unavailable" });
  });
});

describe("a JWT that was verified", () => {
  const answer = verifyJwt(jwtOf("EdDSA"), ALL, JWT_NOW_MS);
  assert.ok(!(answer instanceof Promise) && answer.kind === "verified");
  const { jwt } = answer;

  for (const [title, known, nowMs, expected] of [
    ["holds under the same rules", ALL, JWT_NOW_MS, "verified"],
    ["is over in time", ALL, JWT_NOW_MS + 3_600_000, "over"],
    ["ends with its issuer", new Map(), JWT_NOW_MS, "untrusted"],
    ["ends with its algorithm", issuers(["ES256"]), JWT_NOW_MS, "untrusted"],
    ["ends with its key", issuers(["EdDSA"], fixedKeys([])), JWT_NOW_MS, "untrusted"],
    [
      "ends with its audience",
      new Map([...ALL].map(([iss, issuer]): [string, Issuer] => [iss, { ...issuer, aud: "other" }])),
      JWT_NOW_MS,
      "audience",
    ],
  ] as const)
    test(title, () => {
      const again = judgeAgain(jwt, known, nowMs);
      assert.equal(again.kind === "fault" ? again.code : again.kind, expected);
    });
});
