import assert from "node:assert/strict";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { describe, test } from "node:test";
import { faultOfHead } from "../../../src/http/exchange/head-fault.js";
import { readHeaders } from "../../../src/http/request/request-headers.js";

/** The code of what is wrong with a request that has these headers; `null` for nothing. */
function codeOf(rawHeaders: readonly string[], version = "1.1"): string | null {
  const [major, minor] = version.split(".").map(Number);
  const req = Object.assign(new IncomingMessage(new Socket()), { httpVersionMajor: major, httpVersionMinor: minor });
  return faultOfHead({ req, headers: readHeaders(rawHeaders) })?.code ?? null;
}

describe("a Host header", () => {
  const FINE = [
    "",
    "a",
    "a:80",
    "a:",
    ":80",
    "streams.example",
    "streams.example:4437",
    "127.0.0.1:4437",
    "[::1]",
    "[::1]:4437",
    "[2001:DB8::1]",
    "[v1.a:b]:80",
    "a_b-c.d~e",
    "a%20b",
    "(a),b;c=d!$&'*+",
  ];
  const WRONG = [
    "a b",
    "a@b",
    "a@b/c",
    "a/b",
    "a?b",
    "a#b",
    "a:b",
    "a:80:80",
    "a%2",
    "a%zz",
    "[",
    "[]",
    "[::1",
    "::1",
    "[::1]a",
    "[::g]",
    "[1]",
    "[fe80::1%eth0]",
    "[v1.]",
    "[v.a]",
    "a[b]",
    'a"b',
    "a\\b",
    "a<b",
    "\xe4",
    "http://a",
  ];
  for (const host of FINE) test(`may be ${JSON.stringify(host)}`, () => assert.equal(codeOf(["Host", host]), null));
  for (const host of WRONG) test(`can't be ${JSON.stringify(host)}`, () => assert.equal(codeOf(["Host", host]), "bad-request"));

  test("comes once, also in HTTP/1.0", () => {
    for (const version of ["1.0", "1.1"]) assert.equal(codeOf(["Host", "a", "host", "a"], version), "invalid-header");
  });

  test("may be missing before HTTP/1.1", () => assert.deepEqual([codeOf([]), codeOf([], "1.0")], ["bad-request", null]));

  test("that is long and wrong is found out at once", () => {
    for (const long of ["a".repeat(16_000), "%20".repeat(5_000), `[${":".repeat(16_000)}]`, "1".repeat(16_000)])
      assert.equal(codeOf(["Host", `${long}/`]), "bad-request");
  });
});

describe("a Transfer-Encoding header", () => {
  const cases: readonly (readonly [values: readonly string[], code: string | null])[] = [
    [["chunked"], null],
    [["Chunked"], null],
    [[" , chunked ,"], null],
    [["gzip, chunked"], "unknown-transfer-coding"],
    [["gzip", "chunked"], "unknown-transfer-coding"],
    [["chunked, gzip, chunked"], "unknown-transfer-coding"],
    [["identity, chunked"], "unknown-transfer-coding"],
    [["chunked;a=b, chunked"], "unknown-transfer-coding"],
    [[""], "bad-request"],
    [[",", " "], "bad-request"],
    [["chunked, gzip"], "bad-request"],
    [["chunked", "identity"], "bad-request"],
    [["chunked, chunked"], "bad-request"],
    [["chunked;a=b"], "bad-request"],
  ];
  for (const [values, code] of cases) {
    test(`${values.map((value) => JSON.stringify(value)).join(" and ")} is ${code ?? "fine"}`, () => {
      assert.equal(codeOf(["Host", "a", ...values.flatMap((value) => ["Transfer-Encoding", value])]), code);
    });
  }

  test("is only in HTTP/1.1", () => assert.equal(codeOf(["Transfer-Encoding", "chunked"], "1.0"), "bad-request"));
});

test("a header of the protocol comes once", () =>
  assert.equal(codeOf(["Host", "a", "Stream-Seq", "1", "Stream-Seq", "1"]), "invalid-header"));
