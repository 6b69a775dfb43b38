import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  checkClaims,
  JWT_LEEWAY_MS,
  keptClaims,
  MAX_CLAIMED,
  MAX_CLAIMED_BYTES,
  MAX_CLAIMED_DEEP,
  weightOf,
} from "../../../src/auth/jwt/claims.js";
import { Grants } from "../../../src/auth/rights/grant.js";
import { parseJsonTree } from "../../../src/protocol/json/json-tree.js";
import { MAX_NAME_BYTES } from "../../../src/protocol/names/stream-name.js";
import { claimsWith, JWT_NOW_MS } from "../../helpers/jwt.js";

const NOW = JWT_NOW_MS / 1000;
const LEEWAY = JWT_LEEWAY_MS / 1000;
const OURS = { type: "urn:streamdir:grant", streams: ["a/*"], allow: ["read"] };

function membersOf(claims: unknown) {
  const tree = parseJsonTree(typeof claims === "string" ? claims : JSON.stringify(claims));
  assert.ok(tree.kind === "object");
  return tree.members;
}

function check(claims: unknown, trustGrants = true) {
  return checkClaims(membersOf(claims), { aud: "streams", trustGrants }, JWT_NOW_MS);
}

/** Details with these patterns, in two grants. */
function granting(...patterns: readonly string[]) {
  const half = patterns.length / 2;
  return [patterns.slice(0, half), patterns.slice(half)].map((streams) => ({ ...OURS, streams }));
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
    ["with a rate, which the auth file alone has", [{ ...OURS, rate: "50" }]],
    ["with a field that may narrow it", [{ ...OURS, locations: ["here"] }]],
    ["of which only the second is malformed", [OURS, { type: "urn:streamdir:grant" }]],
  ] as const)
    test(`${title} refuse the JWT`, () =>
      assert.deepEqual(check(claimsWith({ authorization_details: details })), { kind: "fault", code: "grants" }));
});

describe("the patterns of a JWT", () => {
  const deep = (segments: number): string => `**${"/a".repeat(segments)}`;
  const long = "a".repeat(MAX_CLAIMED_BYTES / 2);
  for (const [title, sub, within, beyond] of [
    ["are so many together", "alice", Array.from({ length: MAX_CLAIMED }, (_, at) => `a${at}*`), ["more"]],
    ["have so much text together", "alice", [long, long], ["a"]],
    ["have so much text with who it is for", "ä".repeat(100), Array.from({ length: 10 }, () => "{sub}/**"), ["{sub}"]],
    ["have so many segments after a ** together", "alice", [deep(MAX_CLAIMED_DEEP - 1), "a/**/b"], ["**/c"]],
  ] as const)
    test(`${title}, and not more`, () => {
      const outcome = (patterns: readonly string[]) => {
        const claims = check(claimsWith({ sub, authorization_details: granting(...patterns) }));
        return claims.kind === "fault" ? claims.code : claims.grants.flatMap(({ streams }) => streams).length;
      };
      assert.equal(outcome(within), within.length);
      assert.equal(outcome([...within, ...beyond]), "too-much");
    });

  test("take few steps, whatever they are, for a name that none of them matches", (context) => {
    const costly = Array.from({ length: 10 }, () => `users/alice/**${"/a".repeat(9)}/b`);
    const claims = check(claimsWith({ authorization_details: granting(...costly) }));
    assert.ok(claims.kind === "claims");
    const grants = new Grants(claims.grants, "alice");
    const name = "users/alice".padEnd(MAX_NAME_BYTES - 1, "/a");
    // Each step looks for the end of a segment.
    const { mock } = context.mock.method(String.prototype, "indexOf");
    assert.equal(grants.rightTo("read", name), null);
    assert.ok(mock.callCount() > 10_000 && mock.callCount() < 2 * MAX_CLAIMED_DEEP * MAX_NAME_BYTES, `${mock.callCount()} steps`);
  });
});

describe("what is kept of the claims", () => {
  const foreign = { type: "payment", amount: [{}, {}, {}] };
  for (const [title, details] of [
    ["grants beside what is of others", [foreign, ...granting("a", "{sub}/**"), foreign]],
    ["nothing of ours", [foreign]],
    ["a grant that is malformed", [foreign, { ...OURS, streams: ["/a"] }]],
    ["more than it may have", granting(...Array.from({ length: MAX_CLAIMED + 1 }, () => "a"))],
    ["no list", foreign],
  ] as const)
    test(`is judged as the whole with ${title}`, () => {
      const members = membersOf(claimsWith({ jti: "j", more: [1, 2, 3], authorization_details: details }));
      const kept = keptClaims(members);
      for (const trustGrants of [true, false]) {
        const [whole, part] = [members, kept].map((each) => checkClaims(each, { aud: "streams", trustGrants }, JWT_NOW_MS));
        if (whole?.kind === "claims") assert.deepEqual(part, whole);
        else assert.equal(part?.kind, "fault");
      }
    });

  test("has nothing of others", () => {
    const own = claimsWith({ authorization_details: granting("a", "b") });
    const more = { ...own, more: [1, 2], authorization_details: [foreign, ...granting("a", "b"), foreign] };
    assert.equal(weightOf(keptClaims(membersOf(more))), weightOf(keptClaims(membersOf(own))));
  });

  test("counts for more the more values there are", () => {
    const weight = (more: unknown): number => weightOf(membersOf({ more }));
    assert.ok(weight([]) < weight([0]) && weight([0]) < weight([{}]) && weight([{}]) < weight([{ a: 0 }]));
    assert.equal(weight("aaa") - weight("a"), 2);
  });
});
