import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { faultOfPattern, isSub, MAX_PATTERN_BYTES, patternFor } from "../../../src/auth/rights/pattern.js";

describe("a pattern of the auth file", () => {
  for (const pattern of ["a", "**", "chat/*", "a b/ä", "x/**/y*", "a".repeat(MAX_PATTERN_BYTES), "{", "a}b", "{a/b}"])
    test(`${pattern.slice(0, 40)} is right`, () => assert.equal(faultOfPattern(pattern, false), null));

  for (const [pattern, fault] of [
    ["", /empty/],
    ["ä".repeat(MAX_PATTERN_BYTES / 2) + "a", /at most 1024 bytes/],
    ["/a", /no empty segment/],
    ["a/", /no empty segment/],
    ["a//b", /no empty segment/],
    ["a/../b", /no \. or \.\. segment/],
    [".", /no \. or \.\. segment/],
    ["a\nb", /control/],
    ["a\ud800", /control/],
    ["{sub}", /nobody's name/],
    ["{}", /nobody's name/],
  ] as const)
    test(`${JSON.stringify(pattern.slice(0, 40))} is wrong`, () => assert.match(faultOfPattern(pattern, false) ?? "", fault));

  test("may have {sub}, spelt so, where somebody's name is filled in", () => {
    assert.equal(faultOfPattern("users/{sub}/{sub}-x/**", true), null);
    for (const pattern of ["room-{sub}-*", "*{sub}", "a/*-{sub}/b", "**{sub}"])
      assert.match(faultOfPattern(pattern, true) ?? "", /\{sub\} and \* in one segment/, pattern);
    assert.match(faultOfPattern("users/{Sub}", true) ?? "", /\{Sub\}; only \{sub\}/);
  });

  test("is filled with the name as it is", () => {
    assert.equal(patternFor("users/{sub}/x-{sub}", "$&"), "users/$&/x-$&");
    assert.equal(patternFor("users/{sub}", null), null);
    assert.equal(patternFor("users/*", null), "users/*");
  });
});

describe("a sub", () => {
  for (const sub of ["a", "auth0|1234", "alice@example.com", "a.b", "ä", "a b", ".a", "x".repeat(255)])
    test(`${sub.slice(0, 20)} may stand in a pattern`, () => assert.equal(isSub(sub), true));

  for (const sub of ["", "x".repeat(256), "a/b", "/", "*", "a*", "..", "a..b", ".", "{sub}", "a}", "a\u0000", "a\n", "\u0085", "\ud800"])
    test(`${JSON.stringify(sub.slice(0, 20))} may not`, () => assert.equal(isSub(sub), false));
});
