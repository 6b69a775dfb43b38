import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MAX_JWT_CHARS, parseCompact } from "../../../src/auth/jwt/compact.js";
import { jwtOf, part } from "../../helpers/jwt.js";
import { Random } from "../../helpers/random.js";

const HEADER = part({ alg: "EdDSA" });
const CLAIMS = part({ iss: "a" });

describe("a JWT in the compact form", () => {
  test("comes apart", () => {
    const parsed = parseCompact(`${part({ alg: "EdDSA", kid: "k" })}.${CLAIMS}.AAEC`);
    assert.ok(parsed.kind === "compact");
    assert.deepEqual({ ...parsed.header }, { kind: "header", alg: "EdDSA", kid: "k" });
    assert.equal(parsed.signature.toString("hex"), "000102");
    assert.equal(parsed.signed, `${part({ alg: "EdDSA", kid: "k" })}.${CLAIMS}`);
    assert.deepEqual([...parsed.claims.keys()], ["iss"]);
  });

  for (const typ of ["JWT", "jwt", "at+jwt", "application/at+jwt", undefined])
    test(`may have the type ${typ}`, () => assert.equal(parseCompact(`${part({ alg: "a", typ })}.${CLAIMS}.`).kind, "compact"));

  for (const [title, text, code] of [
    ["nothing", "", "malformed"],
    ["two parts", `${HEADER}.${CLAIMS}`, "malformed"],
    ["four parts", `${HEADER}.${CLAIMS}.AA.AA`, "malformed"],
    ["an encrypted one of five parts", `${HEADER}.AA.AA.AA.AA`, "malformed"],
    ["padding", `${HEADER}.${CLAIMS}.AA==`, "malformed"],
    ["bits in the signature that no byte has", `${HEADER}.${CLAIMS}.AB`, "malformed"],
    ["plain base64", `${HEADER}.${CLAIMS}.++++`, "malformed"],
    ["a space", `${HEADER}. ${CLAIMS}.AA`, "malformed"],
    ["a header that is no object", `${part("[]")}.${CLAIMS}.AA`, "malformed"],
    ["a header that is no JSON", `${part("{alg}")}.${CLAIMS}.AA`, "malformed"],
    ["claims that are no object", `${HEADER}.${part('"a"')}.AA`, "malformed"],
    ["claims that are not UTF-8", `${HEADER}.${Buffer.from([0x22, 0xff, 0x22]).toString("base64url")}.AA`, "malformed"],
    ["a claim twice", `${HEADER}.${part('{"sub":"a","sub":"b"}')}.AA`, "malformed"],
    ["alg twice", `${part('{"alg":"none","alg":"EdDSA"}')}.${CLAIMS}.AA`, "malformed"],
    ["no alg", `${part({})}.${CLAIMS}.AA`, "malformed"],
    ["an alg that is no text", `${part({ alg: ["EdDSA"] })}.${CLAIMS}.AA`, "malformed"],
    ["a kid that is no text", `${part({ alg: "EdDSA", kid: 1 })}.${CLAIMS}.AA`, "malformed"],
    ["crit", `${part({ alg: "EdDSA", crit: ["exp"] })}.${CLAIMS}.AA`, "crit"],
    ["an empty crit", `${part({ alg: "EdDSA", crit: [] })}.${CLAIMS}.AA`, "crit"],
    ["b64", `${part({ alg: "EdDSA", b64: false })}.${CLAIMS}.AA`, "crit"],
    ["another type", `${part({ alg: "EdDSA", typ: "dpop+jwt" })}.${CLAIMS}.AA`, "type"],
    ["a type that is no text", `${part({ alg: "EdDSA", typ: null })}.${CLAIMS}.AA`, "type"],
    ["too many characters", `${HEADER}.${part({ a: "a".repeat(MAX_JWT_CHARS) })}.AA`, "too-long"],
  ] as const)
    test(`with ${title} is refused`, () => assert.deepEqual(parseCompact(text), { kind: "fault", code }));

  test("spoilt in any place is refused or another, and never throws", () => {
    const random = new Random(3);
    const good = jwtOf("EdDSA");
    for (let round = 0; round < 5000; round++) {
      const at = random.integer(0, good.length);
      const inserted = random.pick(["", ".", "=", "\0", "A", "é", "{", "eyJ"]);
      parseCompact(good.slice(0, at) + inserted + good.slice(at + random.integer(0, 3)));
    }
  });
});
