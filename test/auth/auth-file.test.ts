import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseAuthFile } from "../../src/auth/auth-file.js";
import { AUTH_BOUNDS } from "../../src/auth/bounds.js";
import { AuthFileError } from "../../src/auth/checked-json.js";
import { authDocument, parsed, TOKEN_HASH } from "../helpers/auth-files.js";
import { Random } from "../helpers/random.js";

const GRANT = { streams: ["a"], allow: ["read"] };
const TOKEN = { id: "a", sha256: TOKEN_HASH, grants: [GRANT] };
const ISSUER = { iss: "i", aud: "a", algs: ["EdDSA"], jwks: "keys.json", grants: [GRANT] };
const SECRET = Buffer.alloc(32).toString("base64url");

describe("an auth file", () => {
  test("may say nothing", () => {
    assert.deepEqual(parsed({}), { tokens: [], issuers: [], certificates: null, ticketKeys: [], public: [], revoked: [] });
  });

  test("says who may do what", () => {
    const file = parsed(authDocument({ public: [GRANT], revoked: [{ sub: "x", before: "2026-01-01T00:00:00Z" }, { id: "y" }] }));
    assert.deepEqual(file.tokens[0]?.grants[0], {
      streams: ["chat/**"],
      allow: ["read", "append", "close"],
      rate: { requests: 50, bytes: 1024 * 1024 },
    });
    assert.deepEqual(file.revoked, [
      { kind: "sub", value: "x", beforeMs: Date.UTC(2026, 0, 1) },
      { kind: "id", value: "y", beforeMs: Infinity },
    ]);
    assert.deepEqual(file.certificates?.[0]?.streams, ["machines/{sub}"]);
    assert.equal(file.issuers[1]?.trustGrants, true);
  });

  test("takes a hash in both spellings, and times", () => {
    const base64url = Buffer.from(TOKEN_HASH, "hex").toString("base64url");
    const times = { created: "2026-01-01T00:00:00Z", expires: "2027-01-01T00:00:00+01:00" };
    const [one, two] = parsed({ tokens: [TOKEN, { ...TOKEN, id: "b", sha256: base64url, ...times }] }).tokens;
    assert.ok(one !== undefined && two !== undefined && one.hash.equals(two.hash));
    assert.deepEqual([one.createdMs, one.expiresMs], [null, Infinity]);
    assert.deepEqual([two.createdMs, two.expiresMs], [Date.UTC(2026, 0, 1), Date.UTC(2026, 11, 31, 23)]);
  });

  test("takes keys from an https URL", () => {
    const [issuer] = parsed({ issuers: [{ ...ISSUER, jwks: "https://id.example/keys", jwksCa: "ca.pem" }] }).issuers;
    assert.ok(issuer?.keys.kind === "url");
    assert.deepEqual([issuer.keys.url, issuer.keys.caPath], ["https://id.example/keys", "ca.pem"]);
  });

  const token = (more: object) => ({ tokens: [{ ...TOKEN, ...more }] });
  const issuer = (more: object) => ({ issuers: [{ ...ISSUER, ...more }] });
  const grant = (more: object) => token({ grants: [{ ...GRANT, ...more }] });
  const many = (count: number, item: unknown) => Array.from({ length: count }, () => item);
  for (const [title, document, words] of [
    ["no object", [], /^auth\.json:1: the file must be an object/],
    ["an unknown key", { token: [] }, /unknown key "token"; known are tokens, issuers/],
    ["an unknown key of a token", token({ grant: [] }), /tokens\[0\] has the unknown key "grant"/],
    ["no tokens in a list", { tokens: [] }, /tokens must not be empty/],
    ["too many tokens", { tokens: many(AUTH_BOUNDS.tokens + 1, 1) }, /tokens has 10001 items; at most 10000/],
    ["too many issuers", { issuers: many(AUTH_BOUNDS.issuers + 1, 1) }, /at most 100 /],
    ["too many keys", { ticketKeys: many(AUTH_BOUNDS.ticketKeys + 1, 1) }, /at most 100 /],
    ["too many revocations", { revoked: many(AUTH_BOUNDS.revocations + 1, 1) }, /at most 10000 /],
    ["too many grants", { public: many(AUTH_BOUNDS.grants + 1, GRANT) }, /public has 101 items; at most 100/],
    ["too many patterns", grant({ streams: many(AUTH_BOUNDS.patterns + 1, "a") }), /at most 100 /],
    ["a text that is too long", issuer({ iss: "a".repeat(AUTH_BOUNDS.textChars + 1) }), /at most 1024 characters/],
    ["a token without an id", token({ id: undefined }), /tokens\[0\] needs the key "id"/],
    ["an id with _", token({ id: "a_b" }), /tokens\[0\]\.id must be 1 to 64 letters, digits and -/],
    ["an id that is too long", token({ id: "a".repeat(65) }), /1 to 64/],
    ["a token twice", { tokens: [TOKEN, TOKEN] }, /tokens\[1\] is the second one with the name "a"/],
    ["a hash that is too short", token({ sha256: TOKEN_HASH.slice(2) }), /must be a SHA-256/],
    ["a token instead of its hash", token({ sha256: `sd_a_${"A".repeat(43)}` }), /must be a SHA-256/],
    ["a time without a zone", token({ expires: "2027-01-01T00:00:00" }), /tokens\[0\]\.expires must be a time like/],
    ["a time that is a number", token({ created: 1 }), /created must be a text/],
    ["no grants", token({ grants: undefined }), /needs the key "grants"/],
    ["an empty list of grants", token({ grants: [] }), /grants must not be empty/],
    ["an empty list of streams", grant({ streams: [] }), /streams must not be empty/],
    ["an unknown operation", grant({ allow: ["write"] }), /allow\[0\] is "write"; operations are read, append, create/],
    ["a wrong pattern", grant({ streams: ["/a"] }), /streams\[0\] must have no empty segment/],
    ["a pattern that is too long", grant({ streams: ["a".repeat(1025)] }), /at most 1024/],
    ["{sub} for a token", grant({ streams: ["{sub}"] }), /nobody's name/],
    ["a wrong rate", grant({ rate: "fast" }), /rate must be REQUESTS/],
    ["a rate of off", grant({ rate: "off" }), /rate must be REQUESTS/],
    ["an issuer twice", { issuers: [ISSUER, ISSUER] }, /second one with the name "i"/],
    ["an issuer without an aud", issuer({ aud: undefined }), /needs the key "aud"/],
    ["an unknown algorithm", issuer({ algs: ["none"] }), /algs\[0\] is "none"; algorithms are EdDSA, ES256, RS256, HS256/],
    ["no algorithm", issuer({ algs: [] }), /algs must not be empty/],
    ["no keys", issuer({ jwks: undefined }), /needs either "jwks", or "secret"/],
    ["keys and a secret", issuer({ secret: SECRET }), /needs either "jwks", or "secret"/],
    ["HS256 with public keys", issuer({ algs: ["HS256"] }), /must be \["HS256"\] with "secret"/],
    ["a secret for EdDSA", issuer({ jwks: undefined, secret: SECRET }), /must be \["HS256"\] with "secret"/],
    ["a secret for more than HS256", issuer({ jwks: undefined, secret: SECRET, algs: ["HS256", "RS256"] }), /must be \["HS256"\]/],
    ["a short secret", issuer({ jwks: undefined, algs: ["HS256"], secret: SECRET.slice(2) }), /of 32 bytes or more/],
    ["a secret with padding", issuer({ jwks: undefined, algs: ["HS256"], secret: `${SECRET}=` }), /without padding/],
    ["a CA for a secret", issuer({ jwks: undefined, algs: ["HS256"], secret: SECRET, jwksCa: "ca.pem" }), /jwksCa belongs to a jwks/],
    ["a CA for a file", issuer({ jwksCa: "ca.pem" }), /jwksCa belongs to a jwks/],
    ["keys over http", issuer({ jwks: "http://id.example/keys" }), /jwks must be a file, or an https URL/],
    ["keys behind a password", issuer({ jwks: "https://a:b@id.example/" }), /without a user name/],
    ["a URL that is none", issuer({ jwks: "https://" }), /must be a file, or an https URL/],
    ["an issuer without grants", issuer({ grants: undefined }), /needs "grants", or "trustGrants": true/],
    ["trust that is a text", issuer({ trustGrants: "yes" }), /trustGrants must be true or false/],
    ["a template of another claim", issuer({ grants: [{ ...GRANT, streams: ["{email}"] }] }), /only \{sub\} is filled in/],
    ["certificates without grants", { certificates: {} }, /certificates needs the key "grants"/],
    ["a short ticket key", { ticketKeys: [{ id: "a", secret: "AAAA" }] }, /ticketKeys\[0\]\.secret must be base64url/],
    ["a ticket key twice", { ticketKeys: many(2, { id: "a", secret: SECRET }) }, /second one with the name "a"/],
    ["a revocation of nothing", { revoked: [{ before: "2026-01-01T00:00:00Z" }] }, /revoked\[0\] needs one of "id"/],
    ["a revocation of two", { revoked: [{ id: "a", sub: "b" }] }, /needs one of "id"/],
    ["a revocation that is wrong in its time", { revoked: [{ id: "a", before: "now" }] }, /before must be a time/],
  ] as const)
    test(`with ${title} is refused`, () => assert.throws(() => parsed(document), { message: words }));

  test("never shows a secret that it refuses", () => {
    assert.throws(
      () => parsed({ ticketKeys: [{ id: "a", secret: "hunter2" }] }),
      (error: Error) => !error.message.includes("hunter2"),
    );
  });

  test("spoilt in any place is refused in words, or is another", () => {
    const random = new Random(5);
    const good = JSON.stringify(authDocument(), null, 1);
    for (let round = 0; round < 2000; round++) {
      const at = random.integer(0, good.length);
      const text = good.slice(0, at) + random.pick(["", "{", "1", '"', "null", "[]", ",", "é"]) + good.slice(at + random.integer(0, 9));
      try {
        parseAuthFile({ file: "a", text });
      } catch (error) {
        assert.ok(error instanceof AuthFileError, String(error));
        assert.match(error.message, /^a:\d+: .+$/);
      }
    }
  });
});
