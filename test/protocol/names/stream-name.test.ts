import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeName, MAX_NAME_BYTES } from "../../../src/protocol/names/stream-name.js";

function nameOf(encodedPath: string): string | null {
  const result = decodeName(encodedPath);
  return "name" in result ? result.name : null;
}

function faultOf(encodedPath: string): string {
  const result = decodeName(encodedPath);
  return "fault" in result ? result.fault : "";
}

test("a path decodes to one name however it is spelled", () => {
  const table: [encodedPath: string, name: string][] = [
    ["a", "a"],
    ["a/b/c", "a/b/c"],
    ["%41", "A"],
    ["a%2Fb", "a/b"],
    ["a%2fb", "a/b"],
    ["%25", "%"],
    ["%2525", "%25"],
    ["a b~!$&'()*+,;=:@\\", "a b~!$&'()*+,;=:@\\"],
    ["a%20b", "a b"],
    ["a+b", "a+b"],
    ["caf%C3%A9", "café"],
    ["caf\u00c3\u00a9", "café"], // raw bytes, as node:http hands them over
    ["caf\u00c3%A9", "café"],
    ["%F0%9F%8C%8A", "🌊"],
    ["%EF%BB%BFa", "\ufeffa"],
    ["...", "..."],
    ["a./.b/..c", "a./.b/..c"],
    ["__dsx", "__dsx"],
    ["a/__ds", "a/__ds"],
    ["__DS", "__DS"],
    ["Room", "Room"],
  ];
  for (const [encodedPath, name] of table) assert.equal(nameOf(encodedPath), name, encodedPath);
});

test("a bad name is refused with its reason", () => {
  const table: [encodedPath: string, reason: RegExp][] = [
    ["", /is empty/],
    ["/", /segment/],
    ["/a", /segment/],
    ["a/", /segment/],
    ["a//b", /segment/],
    ["a%2F%2Fb", /segment/],
    [".", /segment/],
    ["..", /segment/],
    ["%2e%2E", /segment/],
    ["a/../b", /segment/],
    ["a/%2e/b", /segment/],
    ["a/..", /segment/],
    ["a%00b", /control/],
    ["a\u0000b", /control/],
    ["a%0Ab", /control/],
    ["a%1F", /control/],
    ["a%7F", /control/],
    ["a%C2%85", /control/],
    ["%", /percent/],
    ["a%4", /percent/],
    ["a%G1", /percent/],
    ["a%1G", /percent/],
    ["a%%41", /percent/],
    ["a%-1", /percent/],
    ["a\u0100", /percent/],
    ["a%FF", /UTF-8/],
    ["a\u00ff", /UTF-8/],
    ["%C3", /UTF-8/],
    ["%C0%AF", /UTF-8/],
    ["%ED%A0%80", /UTF-8/],
    ["__ds", /reserved/],
    ["__ds/x", /reserved/],
    ["%5F_ds/x", /reserved/],
    ["__ds%2Fx", /reserved/],
  ];
  for (const [encodedPath, reason] of table) assert.match(faultOf(encodedPath), reason, JSON.stringify(encodedPath));
});

test("a name is bounded by its bytes, not by the characters of its path", () => {
  assert.equal(nameOf("x".repeat(MAX_NAME_BYTES))?.length, MAX_NAME_BYTES);
  assert.match(faultOf("x".repeat(MAX_NAME_BYTES + 1)), /longer/);
  assert.equal(nameOf("%C3%A9".repeat(MAX_NAME_BYTES / 2))?.length, MAX_NAME_BYTES / 2);
  assert.match(faultOf("%C3%A9".repeat(MAX_NAME_BYTES / 2) + "x"), /longer/);
  assert.match(faultOf("%41".repeat(MAX_NAME_BYTES) + "%"), /longer/);
});

test("a name comes back from its encoded spelling", () => {
  const table: [name: string, encoded: string][] = [
    ["a-b_c.d~e/F0", "a-b_c.d~e/F0"],
    ["a b", "a%20b"],
    ["50%", "50%25"],
    ["café/🌊", "caf%C3%A9/%F0%9F%8C%8A"],
    ["!'()*?#[]@`{^", "%21%27%28%29%2A%3F%23%5B%5D%40%60%7B%5E"],
  ];
  for (const [name, encoded] of table) {
    assert.equal(nameOf(encoded), name);
  }
});
