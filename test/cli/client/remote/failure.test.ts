import assert from "node:assert/strict";
import test from "node:test";
import { isTransient, refusal } from "../../../../src/cli/client/remote/failure.js";
import { PROBLEMS } from "../../../../src/http/encoding/problems.js";
import type { Answer } from "../../../../src/cli/client/remote/http-client.js";

function answered(status: number, document: object | string = ""): Answer {
  const type = typeof document === "string" ? "text/html" : "application/problem+json";
  const body = Buffer.from(typeof document === "string" ? document : JSON.stringify(document));
  return { kind: "answer", status, header: (name) => (name === "content-type" ? type : null), body, tookMs: 0 };
}

for (const [status, code, exit] of [
  [400, "invalid-json", 65],
  [401, "invalid-token", 77],
  [403, "not-allowed", 77],
  [403, "stale-epoch", 65],
  [404, "stream-not-found", 66],
  [405, "read-only", 65],
  [409, "stream-closed", 65],
  [410, "stream-gone", 66],
  [410, "offset-gone", 65],
  [412, "tail-moved", 65],
  [413, "body-too-large", 65],
  [421, "host-not-allowed", 77],
  [429, "rate-limited", 75],
  [500, "internal-error", 74],
  [503, "overloaded", 75],
  [507, "storage-full", 75],
] as const)
  test(`${status} ${code} ends with ${exit}`, () => {
    const { status: ended, line, code: told } = refusal(answered(status, { code, title: "No", detail: "Why" }), "it");
    assert.deepEqual([ended, line, told], [exit, `it: No: Why (${code})`, code]);
  });

test("a missing credential is told by where the commands take one from", () => {
  const missing = answered(401, { code: "credential-missing", title: "No", detail: "Send a header." });
  const { status, line } = refusal(missing, "it");
  assert.deepEqual([status, line], [77, "it: No: see --token-file and --cert-file, or set STREAMDIR_TOKEN (credential-missing)"]);
});

test("an answer without a problem document is told by its status", () => {
  for (const [status, words] of [
    [404, "The server answers with 404, and not why: there is no such stream, or --server or --prefix is wrong"],
    [410, "The stream is gone"],
    [401, "The server asks for a token or a certificate: see --token-file and --cert-file"],
    [403, "The token has no right to this"],
    [302, "The server answers with 302"],
    [503, "The server answers with 503, and not why: see its /health"],
  ] as const)
    assert.deepEqual(refusal(answered(status), "it").line, `it: ${words}`);
  const cut: Answer = { ...answered(500, {}), body: Buffer.from('{"code"') };
  assert.equal(refusal(cut, "it").line, "it: The server answers with 500");
});

test("a bare 401 says by its challenge whether the token was missing or not taken", () => {
  const challenged = (challenge: string): string =>
    refusal({ ...answered(401), header: (name) => (name === "www-authenticate" ? challenge : null) }, "it").line;
  assert.equal(challenged("Bearer"), "it: The server asks for a token or a certificate: see --token-file and --cert-file");
  for (const challenge of [PROBLEMS["invalid-token"].challenge ?? "", 'Bearer realm="a", error=invalid_token'])
    assert.equal(challenged(challenge), "it: The server does not take this token: it is unknown, over or revoked");
});

test("of another server's answer the first line of a short text is told", () => {
  const told = (body: string, type = "text/plain; charset=utf-8"): string =>
    refusal({ ...answered(409, body), header: (name) => (name === "content-type" ? type : null) }, "it").line;
  const status = "it: The server answers with 409";
  assert.equal(told("Stream exists\n with another type"), `${status}: Stream exists`);
  assert.equal(told("red \u001b[31m\u2028"), `${status}: red \\u001b[31m`);
  assert.equal(told("x".repeat(512)), `${status}: ${"x".repeat(512)}`);
  const missing = { ...answered(404, "Stream not found"), header: () => "text/plain" };
  assert.equal(refusal(missing, "it").line, "it: The server answers with 404: Stream not found");
  for (const body of ["", "\r\n", "x".repeat(513)]) assert.equal(told(body), status);
  assert.equal(told("<p>No", "text/html"), status);
});

test("a refusal that a while may change is transient", () => {
  assert.deepEqual(
    [429, 502, 503, 504, 507].map((status) => isTransient(answered(status))),
    [true, true, true, true, true],
  );
  assert.deepEqual(
    [200, 404, 409, 500].map((status) => isTransient(answered(status))),
    [false, false, false, false],
  );
});
