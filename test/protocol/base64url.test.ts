import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { base64UrlLength, decodeBase64Url } from "../../src/protocol/base64url.js";

describe("base64url", () => {
  for (const [text, hex] of [
    ["", ""],
    ["AA", "00"],
    ["_-8", "ffef"],
    ["AAEC", "000102"],
  ] as const) {
    test(`${JSON.stringify(text)} is ${hex === "" ? "nothing" : hex}`, () => assert.equal(decodeBase64Url(text)?.toString("hex"), hex));
  }

  for (const text of ["A", "AB", "AA==", "+/8", "AA A", "AA\n", "Ä", "AAEC=", "AA.A"])
    test(`${JSON.stringify(text)} is none`, () => assert.equal(decodeBase64Url(text), null));

  test("its length is known before", () => {
    for (const bytes of [0, 1, 2, 3, 31, 32]) assert.equal(base64UrlLength(bytes), Buffer.alloc(bytes).toString("base64url").length);
  });
});
