import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { authDocument, bearer, lasting, openAuthority, tokenOf } from "../helpers/auth-files.js";
import { claimsWith, jwtOf, JWT_NOW_MS, part } from "../helpers/jwt.js";

const GRANT = { type: "urn:streamdir:grant", streams: ["jobs/*", "own/{sub}"], allow: ["create"] };

describe("who shows a JWT", () => {
  test("may do what its issuer is given, in its own name", async (context) => {
    const { caller } = await openAuthority(context);
    const alice = caller(bearer(jwtOf("EdDSA")));
    assert.equal(alice.id, "jwt https://id.example alice");
    assert.equal(alice.endsAtMs, JWT_NOW_MS + 630_000);
    assert.ok(alice.rightTo("read", "users/alice/a") !== null);
    assert.equal(alice.rightTo("read", "users/bob/a"), null);
    assert.equal(alice.rightTo("append", "users/alice/a"), null);
  });

  test("may do what it says itself, from an issuer that is trusted to grant", async (context) => {
    const { caller } = await openAuthority(context);
    const claims = claimsWith({ authorization_details: [GRANT] });
    const trusted = caller(bearer(jwtOf("HS256", { ...claims, iss: "hmac" })));
    assert.ok(trusted.rightTo("create", "jobs/1") !== null && trusted.rightTo("create", "own/alice") !== null);
    assert.equal(trusted.rightTo("create", "own/bob"), null);
    assert.equal(caller(bearer(jwtOf("EdDSA", claims))).rightTo("create", "jobs/1"), null);
  });

  test("has no name of its own without a sub", async (context) => {
    const { caller } = await openAuthority(context);
    const nobody = caller(bearer(jwtOf("EdDSA", claimsWith({ sub: undefined }))));
    assert.equal(nobody.id, "jwt https://id.example");
    assert.equal(nobody.rightTo("read", "users/{sub}/a"), null);
  });

  const before = (s: number): string => new Date(JWT_NOW_MS + s * 1000).toISOString();
  for (const [title, revoked, more, holds] of [
    ["their name", { sub: "alice" }, {}, false],
    ["their name before they got it", { sub: "alice", before: before(-5) }, {}, false],
    ["their name before another time", { sub: "alice", before: before(-15) }, {}, true],
    ["their name, and it says not when it was issued", { sub: "alice", before: before(-9999) }, { iat: undefined }, false],
    ["its number", { jti: "j1" }, {}, false],
    ["another number", { jti: "j2" }, {}, true],
    ["a token's id", { id: "alice" }, {}, true],
  ] as const)
    test(`is ${holds ? "known after" : "refused by"} a revocation of ${title}`, async (context) => {
      const { who } = await openAuthority(context, authDocument({ revoked: [revoked] }));
      const id = who(bearer(jwtOf("EdDSA", claimsWith({ jti: "j1", ...more }))));
      assert.equal(id === "jwt https://id.example alice", holds);
    });
});

describe("who has a certificate", () => {
  test("may do what certificates may, in its name", async (context) => {
    const { caller } = await openAuthority(context);
    const press = caller({ certificate: lasting("press-7") });
    assert.equal(press.id, "certificate press-7");
    assert.ok(press.rightTo("append", "machines/press-7") !== null);
    assert.equal(press.rightTo("append", "machines/press-8"), null);
  });

  for (const [title, document, name] of [
    ["where certificates say nothing", authDocument({ certificates: undefined }), "press-7"],
    ["with a name that is unsafe in a pattern", authDocument(), "*"],
    ["with an empty name", authDocument(), ""],
    ["with a name that is revoked", authDocument({ revoked: [{ sub: "press-7" }] }), "press-7"],
  ] as const)
    test(`is refused ${title}`, async (context) => {
      const { who } = await openAuthority(context, document);
      assert.equal(who({ certificate: lasting(name) }), "invalid-token");
    });

  test("is refused where it is older than a revocation of its name; a newer one counts", async (context) => {
    const before = new Date(JWT_NOW_MS - 60_000).toISOString();
    const { ask, who } = await openAuthority(context, authDocument({ revoked: [{ sub: "press-7", before }] }));
    const stolen = ask({ certificate: lasting("press-7", 61_000) }, null);
    assert.deepEqual("kind" in stolen && [stolen.code, stolen.detail], ["invalid-token", "The client's certificate is revoked."]);
    assert.equal(who({ certificate: lasting("press-7", 59_000) }), "certificate press-7");
  });

  test("is told that it has expired", async (context) => {
    const { ask } = await openAuthority(context);
    const over = ask({ certificate: { ...lasting("press-7"), endsAtMs: JWT_NOW_MS } }, null);
    assert.equal("kind" in over && over.detail, "The client's certificate has expired.");
  });
});

describe("a token in a URL", () => {
  for (const text of [tokenOf("ci"), "sd_x", jwtOf("EdDSA"), `${part({})}.${part({})}.`])
    test(`is refused, and told why: ${text.slice(0, 20)}`, async (context) => {
      const { ask } = await openAuthority(context);
      for (const name of ["chat/42", null]) {
        const answer = ask({ ticket: text }, name);
        assert.ok("kind" in answer && answer.code === "invalid-token");
        assert.match(answer.detail, /never go in a URL/);
      }
    });
});
