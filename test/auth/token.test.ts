import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Revocations } from "../../src/auth/revocations.js";
import { tagOf } from "../../src/auth/revocations.js";
import { hashSecret, makeToken, parseToken, Tokens } from "../../src/auth/token.js";
import { parsed, TOKEN_HASH, TOKEN_SECRET, tokenOf } from "../helpers/auth-files.js";

const NOW = Date.UTC(2026, 0, 1);

describe("a token", () => {
  for (const [text, id] of [
    [tokenOf("ci"), "ci"],
    [tokenOf("a"), "a"],
    [tokenOf("-A9-"), "-A9-"],
    [`sd_a_${"_".repeat(43)}`, "a"],
    [tokenOf("x".repeat(64)), "x".repeat(64)],
    [tokenOf("x".repeat(65)), null],
    [tokenOf(""), null],
    [tokenOf("a_b"), null],
    [tokenOf("a b"), null],
    [tokenOf("ä"), null],
    ["", null],
    ["sd_", null],
    [`sd_a_${"A".repeat(42)}`, null],
    [`sd_a_${"A".repeat(44)}`, null],
    [`sd_a_${"A".repeat(42)}+`, null],
    [`sd_a${"A".repeat(44)}`, null],
    [`SD_a_${"A".repeat(43)}`, null],
    [`sd_a_${"A".repeat(42)}\n`, null],
  ] as const)
    test(`${JSON.stringify(text.slice(0, 30))} has ${id === null ? "no id" : `the id ${id.slice(0, 9)}`}`, () =>
      assert.equal(parseToken(text)?.id ?? null, id));

  test("is made with a secret of its own", () => {
    const { token, hash } = makeToken("ci");
    const parts = parseToken(token);
    assert.ok(parts !== null && hashSecret(parts.secret).equals(hash));
    assert.notEqual(makeToken("ci").token, token);
  });
});

describe("the tokens of a file", () => {
  const grants = [{ streams: ["a"], allow: ["read"] }];
  const [created, expires] = [new Date(NOW).toISOString(), new Date(NOW + 1000).toISOString()];
  const entries = parsed({ tokens: [{ id: "ci", sha256: TOKEN_HASH, created, expires, grants }] }).tokens;
  const none = new Revocations([]);
  const right = { id: "ci", secret: TOKEN_SECRET };

  test("know theirs, and one caller for each", () => {
    const tokens = new Tokens(entries, none);
    const caller = tokens.authenticate(right, NOW);
    assert.equal(caller?.id, "token ci");
    assert.equal(caller.endsAtMs, NOW + 1000);
    assert.equal(tokens.authenticate(right, NOW), caller);
    assert.equal(tokens.byTag(tagOf("id", "ci"), NOW), caller);
    assert.equal(tokens.renew("ci", hashSecret(TOKEN_SECRET), NOW), caller);
  });

  test("know no other secret, id or tag", () => {
    const tokens = new Tokens(entries, none);
    assert.equal(tokens.authenticate({ ...right, secret: "B".repeat(43) }, NOW), null);
    assert.equal(tokens.authenticate({ ...right, id: "other" }, NOW), null);
    assert.equal(tokens.byTag(tagOf("id", "other"), NOW), null);
    assert.equal(tokens.renew("other", hashSecret(TOKEN_SECRET), NOW), null);
    assert.equal(tokens.renew("ci", hashSecret("B".repeat(43)), NOW), null, "another token of the same id");
  });

  test("end in time", () => assert.equal(new Tokens(entries, none).authenticate(right, NOW + 1000), null));

  for (const [title, beforeMs, holds] of [
    ["for all", Infinity, false],
    ["for those made before a later time", NOW + 1, false],
    ["for those made before", NOW, true],
  ] as const)
    test(`${holds ? "hold after" : "end by"} a revocation ${title}`, () => {
      const tokens = new Tokens(entries, new Revocations([{ kind: "id", value: "ci", beforeMs }]));
      assert.equal(tokens.authenticate(right, NOW) !== null, holds);
      assert.equal(tokens.renew("ci", hashSecret(TOKEN_SECRET), NOW) !== null, holds);
    });
});
