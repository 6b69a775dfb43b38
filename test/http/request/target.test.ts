import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hostOf, splitTarget } from "../../../src/http/request/target.js";

const CASES: readonly (readonly [target: string, path: string, query: string])[] = [
  ["/a/b", "/a/b", ""],
  ["/a?offset=-1", "/a", "offset=-1"],
  ["/a?", "/a", ""],
  ["/a?b?c=/d", "/a", "b?c=/d"],
  ["/", "/", ""],
  ["*", "*", ""],
  ["http://example.com/a?b=c", "/a", "b=c"],
  ["HTTPS://example.com:8443/a", "/a", ""],
  ["http://example.com", "/", ""],
  ["http://example.com?b=c", "/", "b=c"],
  ["//host/a", "//host/a", ""],
  ["ftp://host/a", "ftp://host/a", ""],
  ["", "", ""],
];

describe("a target is split into path and query", () => {
  for (const [target, path, query] of CASES) {
    test(JSON.stringify(target), () => assert.deepEqual(splitTarget(target), { path, query }));
  }
});

describe("the host of a request is", () => {
  for (const [target, host, expected] of [
    ["/a", "h", "h"],
    ["/a", null, null],
    ["//other/a", "h", "h"],
    ["*", "h", "h"],
    ["", "h", "h"],
    ["ftp://other/a", "h", "h"],
    ["/http://other/a", "h", "h"],
    ["http://other/a", "h", "other"],
    ["http://other/a", null, "other"],
    ["HTTPS://other:8443?b=c", "h", "other:8443"],
    ["http://[::1]:80/a", "h", "[::1]:80"],
    ["http://h@other/a", "h", "h@other"],
    ["http:///a", "h", ""],
  ] as const)
    test(`${expected} for ${JSON.stringify(target)} with Host ${host}`, () => assert.equal(hostOf(target, host), expected));
});
