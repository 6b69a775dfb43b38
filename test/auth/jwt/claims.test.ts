import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkClaims, JWT_LEEWAY_MS, MAX_CLAIMED } from "../../../src/auth/jwt/claims.js";
import { parseJsonTree } from "../../../src/protocol/json/json-tree.js";
import { claimsWith, JWT_NOW_MS } from "../../helpers/jwt.js";

const NOW = JWT_NOW_MS / 1000;
const LEEWAY = JWT_LEEWAY_MS / 1000;
const OURS = { type: "urn:streamdir:grant", streams: ["a/*"], allow: ["read"] };

function check(claims: unknown, trustGrants = true) {
  const tree = parseJsonTree(typeof claims === "string" ? claims : JSON.stringify(claims));
  assert.ok(tree.kind === "object");
  return checkClaims(tree.members, { aud: "streams", trustGrants }, JWT_NOW_MS);
}

describe("the claims of a JWT", () => {
  test("are taken with what they say", () => {
    assert.deepEqual(check(claimsWith({ jti: "j" })), {
      kind: "claims",
      sub: "alice",
      jti: "j",
      issuedAtMs: JWT_NOW_MS - 10_000,
      endsAtMs: JWT_NOW_MS + 600_000 + JWT_LEEWAY_MS,
      grants: [],
    });
  });

  for (const [title, more] of [
    ["an exp within the leeway", { exp: NOW - LEEWAY + 1 }],
    ["an exp with a fraction", { exp: NOW + 0.5 }],
    ["an nbf within the leeway", { nbf: NOW + LEEWAY }],
    ["an iat within the leeway", { iat: NOW + LEEWAY }],
    ["no iat", { iat: undefined }],
    ["no sub", { sub: undefined }],
    ["a list of audiences", { aud: ["other", "streams"] }],
    ["claims of others", { scope: "x", roles: ["admin"], kind: "fault" }],
  ] as const)
    test(`with ${title} hold`, () => assert.equal(check(claimsWith(more)).kind, "claims"));

  for (const [title, more, code] of [
    ["no exp", { exp: undefined }, "claims"],
    ["an exp that is past", { exp: NOW - LEEWAY }, "over"],
    ["an exp that is a text", { exp: String(NOW + 600) }, "claims"],
    ["an exp that is null", { exp: null }, "claims"],
    ["an exp below 0", { exp: -1 }, "claims"],
    ["an exp that no clock has", { exp: 1e300 }, "claims"],
    ["an nbf in the future", { nbf: NOW + LEEWAY + 1 }, "too-early"],
    ["an nbf that is a text", { nbf: "0" }, "claims"],
    ["an iat in the future", { iat: NOW + LEEWAY + 1 }, "too-early"],
    ["an iat that is an object", { iat: {} }, "claims"],
    ["no aud", { aud: undefined }, "audience"],
    ["another aud", { aud: "stream" }, "audience"],
    ["an empty list of audiences", { aud: [] }, "audience"],
    ["a number among the audiences", { aud: ["streams", 1] }, "claims"],
    ["an aud that is an object", { aud: { streams: true } }, "claims"],
    ["a sub with a slash", { sub: "a/b" }, "subject"],
    ["a sub with an asterisk", { sub: "*" }, "subject"],
    ["a sub that goes up", { sub: ".." }, "subject"],
    ["a sub that is a number", { sub: 1 }, "subject"],
    ["an empty sub", { sub: "" }, "subject"],
    ["a sub that is a pattern's name", { sub: "{sub}" }, "subject"],
    ["a jti that is a number", { jti: 1 }, "claims"],
  ] as const)
    test(`with ${title} are refused`, () => assert.deepEqual(check(claimsWith(more)), { kind: "fault", code }));

  test("with an exp that is no finite number are refused", () =>
    assert.deepEqual(check('{"exp":1e400,"aud":"streams"}'), { kind: "fault", code: "claims" }));
});

describe("the grants in a JWT", () => {
  test("are taken from an issuer that may grant; those of other types are not ours", () => {
    const claims = check(claimsWith({ authorization_details: [{ type: "payment", amount: 1 }, OURS] }));
    assert.ok(claims.kind === "claims");
    assert.deepEqual(claims.grants, [{ streams: ["a/*"], allow: ["read"], rate: null }]);
  });

  test("are not looked at from another issuer", () => {
    const claims = check(claimsWith({ authorization_details: "nonsense" }), false);
    assert.ok(claims.kind === "claims");
    assert.deepEqual(claims.grants, []);
  });

  for (const [title, details] of [
    ["that are no list", OURS],
    ["too many", Array.from({ length: MAX_CLAIMED + 1 }, () => OURS)],
    ["without a type", [{ streams: ["a"], allow: ["read"] }]],
    ["that are texts", ["urn:streamdir:grant"]],
    ["without streams", [{ ...OURS, streams: undefined }]],
    ["with no stream", [{ ...OURS, streams: [] }]],
    ["with too many streams", [{ ...OURS, streams: Array.from({ length: MAX_CLAIMED + 1 }, () => "a") }]],
    ["with a stream that is a number", [{ ...OURS, streams: ["a", 1] }]],
    ["with a wrong pattern", [{ ...OURS, streams: ["/a"] }]],
    ["with nothing allowed", [{ ...OURS, allow: [] }]],
    ["with an unknown operation", [{ ...OURS, allow: ["read", "write"] }]],
    ["with a text for a list", [{ ...OURS, allow: "read" }]],
    ["with a field that may narrow it", [{ ...OURS, locations: ["here"] }]],
    ["of which only the second is malformed", [OURS, { type: "urn:streamdir:grant" }]],
  ] as const)
    test(`${title} refuse the JWT`, () =>
      assert.deepEqual(check(claimsWith({ authorization_details: details })), { kind: "fault", code: "grants" }));
});
