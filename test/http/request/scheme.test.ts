import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { firstOf, schemeOf } from "../../../src/http/request/scheme.js";

describe("the scheme that a client used", () => {
  for (const [forwardedProto, isEncrypted, expected] of [
    [null, false, "http"],
    [null, true, "https"],
    ["https", false, "https"],
    ["http", true, "http"],
    [" HTTPS , http", false, "https"],
    ["http,https", true, "http"],
    ["javascript", false, "http"],
    ["wss", true, "https"],
    ["", true, "https"],
  ] as const)
    test(`X-Forwarded-Proto ${forwardedProto} ${isEncrypted ? "over TLS" : "without TLS"}: ${expected}`, () => {
      const socket = isEncrypted ? { encrypted: true } : {};
      assert.equal(schemeOf({ req: { socket }, headers: { forwardedProto } }), expected);
    });
});

test("the first entry of a list is the one before its first comma", () => {
  for (const [list, first] of [
    [null, null],
    ["", ""],
    [" a ", "a"],
    ["a , b", "a"],
  ] as const)
    assert.equal(firstOf(list), first);
});
