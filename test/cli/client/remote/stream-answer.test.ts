import assert from "node:assert/strict";
import test from "node:test";
import type { Answer, Asked } from "../../../../src/cli/client/remote/http-client.js";
import { faultOfPlace } from "../../../../src/cli/client/remote/stream-answer.js";

const OFFSET = { "stream-next-offset": "1_2" };
const PROBLEM = { "content-type": "application/problem+json" };
const PAGE = { "content-type": "text/html; charset=utf-8" };

function faultOf(method: Asked["method"], status: number, headers: Readonly<Record<string, string>>, code = "") {
  const body = Buffer.from(JSON.stringify({ code, title: "No" }));
  const answer: Answer = { kind: "answer", status, header: (name) => headers[name] ?? null, body, tookMs: 0 };
  return faultOfPlace({ method, target: "/" }, answer, { name: "it", prefix: "/v1/" });
}

for (const [method, status, headers, code] of [
  ["PUT", 201, OFFSET],
  ["PUT", 200, OFFSET],
  ["POST", 200, OFFSET],
  ["POST", 204, OFFSET],
  // The protocol's own server, of an append that a producer has sent before.
  ["POST", 204, { "producer-epoch": "0", "producer-seq": "1" }],
  ["GET", 200, OFFSET],
  ["GET", 204, OFFSET],
  ["HEAD", 200, OFFSET],
  // Other servers have offsets of other forms.
  ["HEAD", 200, { "stream-next-offset": "~,/=+abc", "stream-earliest-offset": "-1" }],
  ["DELETE", 204, {}],
  ["DELETE", 404, PROBLEM, "stream-not-found"],
  ["GET", 404, { "content-type": "text/plain" }],
  ["POST", 409, PROBLEM, "stream-closed"],
  ["POST", 500, PAGE],
] as const)
  test(`${status} to ${method} with ${Object.keys(headers).join(", ")} may be of a server of streams`, () => {
    assert.equal(faultOf(method, status, headers, code), null);
  });

for (const [method, status, headers, why] of [
  ["PUT", 200, PAGE, "it says no offset"],
  ["PUT", 204, {}, "it says no offset"],
  ["PUT", 201, { "stream-next-offset": "" }, "it says no offset"],
  ["PUT", 201, { "producer-epoch": "0" }, "it says no offset"],
  ["POST", 204, {}, "it says no offset"],
  ["GET", 200, PAGE, "it says no offset"],
  ["HEAD", 200, PAGE, "it says no offset"],
  ["GET", 200, { "stream-next-offset": "\u009b32m_X" }, "its offset has characters that none has"],
  ["HEAD", 200, { ...OFFSET, "stream-earliest-offset": "1 2" }, "its offset has characters that none has"],
  ["POST", 204, { "stream-next-offset": "\u007f", "producer-epoch": "0" }, "its offset has characters that none has"],
  ["DELETE", 200, PAGE, "it answers DELETE with 200"],
  ["POST", 301, OFFSET, "it answers POST with 301"],
  ["GET", 404, PAGE, "its answer is a web page"],
] as const)
  test(`${status} to ${method} with ${Object.keys(headers).join(", ")} is of no server of streams`, () => {
    const line = `it is no server of streams: ${why}; see --server`;
    assert.deepEqual(faultOf(method, status, headers), { kind: "failure", status: 69, line, code: null });
  });

test("a path at which nothing is served is outside of the prefix", () => {
  const line = "it below /v1/: No (unknown-path); see --prefix and --server";
  assert.deepEqual(faultOf("DELETE", 404, PROBLEM, "unknown-path"), { kind: "failure", status: 69, line, code: "unknown-path" });
});
