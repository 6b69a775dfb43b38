import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CorsPolicy, PREFLIGHT_HEADERS } from "../../src/http/cors.js";

function asRecord(flat: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {};
  for (let at = 0; at < flat.length; at += 2) record[flat[at] ?? ""] = flat[at + 1] ?? "";
  return record;
}

describe("any origin may call", () => {
  const policy = new CorsPolicy("*");
  for (const origin of [null, "https://a.example"]) {
    test(`asked from ${origin}`, () => {
      const headers = asRecord(policy.headersFor(origin).list);
      assert.equal(headers["Access-Control-Allow-Origin"], "*");
      assert.equal(headers["Vary"], undefined);
      assert.equal(headers["X-Content-Type-Options"], "nosniff");
      assert.equal(headers["Cross-Origin-Resource-Policy"], "cross-origin");
      assert.equal(headers["Content-Security-Policy"], "sandbox; default-src 'none'");
    });
  }
});

describe("some origins may call", () => {
  const policy = new CorsPolicy("https://A.example, http://localhost:8080");
  const cases: readonly (readonly [origin: string | null, allowed: string | undefined])[] = [
    ["https://a.example", "https://a.example"],
    ["http://localhost:8080", "http://localhost:8080"],
    ["https://b.example", undefined],
    ["https://a.example.evil", undefined],
    ["null", undefined],
    [null, undefined],
  ];
  for (const [origin, allowed] of cases) {
    test(`asked from ${origin}`, () => {
      const headers = asRecord(policy.headersFor(origin).list);
      assert.equal(headers["Access-Control-Allow-Origin"], allowed);
      assert.equal(headers["Access-Control-Expose-Headers"] !== undefined, allowed !== undefined);
      assert.equal(headers["Vary"], "Origin");
      assert.equal(headers["X-Content-Type-Options"], "nosniff");
      assert.equal(headers["Content-Security-Policy"], "sandbox; default-src 'none'");
    });
  }
});

test("a browser may read every protocol header of an answer", () => {
  const exposed = asRecord(new CorsPolicy("*").headersFor(null).list)["Access-Control-Expose-Headers"]?.split(", ");
  const needed = ["ETag", "Location", "Producer-Epoch", "Producer-Expected-Seq", "Producer-Received-Seq", "Producer-Seq", "Retry-After", "Stream-Closed", "Stream-Cursor", "Stream-Expires-At", "Stream-Next-Offset", "Stream-SSE-Data-Encoding", "Stream-TTL", "Stream-Up-To-Date"];
  for (const name of needed) assert.ok(exposed?.includes(name), name);
});

test("a browser may send every protocol header of a request", () => {
  const headers = asRecord(PREFLIGHT_HEADERS);
  const needed = ["Authorization", "Content-Type", "If-None-Match", "Last-Event-ID", "Producer-Epoch", "Producer-Id", "Producer-Seq", "Stream-Closed", "Stream-Expires-At", "Stream-Seq", "Stream-TTL"];
  for (const name of needed) assert.ok(headers["Access-Control-Allow-Headers"]?.split(", ").includes(name), name);
  assert.equal(headers["Access-Control-Allow-Methods"], "GET, HEAD, PUT, POST, DELETE, OPTIONS");
  assert.match(headers["Access-Control-Max-Age"] ?? "", /^\d+$/);
});
