import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ServerOptions } from "../../src/server.js";
import type { Answer } from "../helpers/raw-connection.js";
import { ALL_PATHS, takePath } from "../helpers/request-paths.js";
import { startServer } from "../helpers/test-server.js";

function codeOf(answer: Answer): string {
  return JSON.parse(answer.text).code;
}

function assertCommonHeaders({ headers }: Answer): void {
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal(headers["cross-origin-resource-policy"], "cross-origin");
  assert.equal(headers["content-security-policy"], "sandbox; default-src 'none'");
  assert.equal(headers["access-control-allow-origin"], "*");
  assert.match(headers["access-control-expose-headers"] ?? "", /Stream-Next-Offset/);
}

describe("every answer has the headers that every answer has", () => {
  const requests: readonly (readonly [method: string, target: string])[] = [
    ["PUT", "b"],
    ["PUT", "a"],
    ["POST", "a"],
    ["GET", "a"],
    ["GET", "a?offset=now"],
    ["HEAD", "a"],
    ["GET", "missing"],
    ["OPTIONS", "a"],
    ["OPTIONS", "*"],
    ["PATCH", "a"],
    ["GET", "/health"],
    ["GET", "/other"],
    ["GET", "a?live=nonsense"],
    ["DELETE", "b"],
  ];
  test("whatever is asked for", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a");
    for (const [method, target] of requests) assertCommonHeaders(await server.send(method, target));
  });
});

describe("a page that is stored in a stream has no origin, and runs and loads nothing", () => {
  const HTML = { headers: { "Content-Type": "text/html" }, body: "<script>alert(origin)</script>" };
  const reads: readonly (readonly [title: string, method: string, target: string, status: number, headers?: Record<string, string>])[] = [
    ["read from the start", "GET", "a", 200],
    ["read from now", "GET", "a?offset=now", 200],
    ["asked for again", "GET", "a", 304, { "If-None-Match": "*" }],
    ["read by a long-poll", "GET", "a?live=long-poll&offset=-1", 200],
    ["waited for", "GET", "a?live=long-poll&offset=now", 204],
    ["asked about", "HEAD", "a", 200],
    ["missing", "GET", "b", 404],
  ];
  for (const path of ALL_PATHS) {
    for (const [title, method, target, status, headers = {}] of reads) {
      test(`${title}, on the ${path} path`, async (context) => {
        takePath(context, path);
        const server = await startServer(context);
        await server.send("PUT", "a", { ...HTML, headers: { ...HTML.headers, "Stream-Closed": "true" } });
        const answer = await server.send(method, target, { headers });
        assert.deepEqual([answer.status, answer.headers["content-security-policy"]], [status, "sandbox; default-src 'none'"]);
      });
    }

    test(`followed, on the ${path} path`, async (context) => {
      takePath(context, path);
      const server = await startServer(context);
      await server.send("PUT", "a", HTML);
      const connection = await server.begin("GET", "a?live=sse&offset=-1");
      assert.equal((await connection.head()).headers["content-security-policy"], "sandbox; default-src 'none'");
    });
  }
});

describe("the dispatcher leads a request", () => {
  const cases: readonly (readonly [title: string, method: string, target: string, status: number, code: string | null, allow?: string])[] =
    [
      ["an unknown path", "GET", "/v1/other", 404, "unknown-path"],
      ["another method of the root", "PUT", "/", 405, "method-not-allowed", "GET, HEAD, OPTIONS"],
      ["the prefix without its last slash", "GET", "/v1/stream", 404, "unknown-path"],
      ["the prefix without a name", "PUT", "/v1/stream/", 400, "invalid-name"],
      ["a read without a name", "GET", "/v1/stream/?offset=-1", 400, "invalid-name"],
      ["a post without a name", "POST", "/v1/stream/", 400, "invalid-name"],
      ["an unknown method", "PATCH", "a", 405, "method-not-allowed", "GET, HEAD, PUT, POST, DELETE, OPTIONS"],
      ["a method of WebDAV", "PROPFIND", "a", 405, "method-not-allowed", "GET, HEAD, PUT, POST, DELETE, OPTIONS"],
      ["a name with a NUL", "PUT", "a%00b", 400, "invalid-name"],
      ["a name with CR and LF", "PUT", "a%0d%0ab", 400, "invalid-name"],
      ["a name with an invalid percent-encoding", "PUT", "a%zz", 400, "invalid-name"],
      ["a name that is not UTF-8", "PUT", "a%ff", 400, "invalid-name"],
      ["a name of dots", "PUT", "%2e%2e/a", 400, "invalid-name"],
      ["an empty segment", "PUT", "a//b", 400, "invalid-name"],
      ["a reserved name", "PUT", "__ds/a", 400, "invalid-name"],
      ["a name of 1,025 bytes", "PUT", "n".repeat(1025), 400, "invalid-name"],
      ["an URL of 8 KiB", "PUT", "n".repeat(8192), 400, "invalid-name"],
      ["a query of 8 KiB", "GET", `a?q=${"n".repeat(8192)}`, 200, null],
      ["OPTIONS of an unknown path", "OPTIONS", "/v1/other", 404, "unknown-path"],
    ];
  for (const [title, method, target, status, code, allow] of cases) {
    test(title, async (context) => {
      const server = await startServer(context);
      await server.send("PUT", "a");
      const answer = await server.send(method, target);
      assert.equal(answer.status, status);
      if (code !== null) assert.equal(codeOf(answer), code);
      assert.equal(answer.headers["allow"], allow);
    });
  }

  test("two spellings of a name are one stream", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a/%41%C3%A9", { body: "x" });
    for (const target of ["a/A%c3%a9", "a%2FA%C3%A9", "http://elsewhere.test/v1/stream/a/A%C3%A9"])
      assert.equal((await server.send("GET", target)).text, "x", target);
  });

  test("another prefix", async (context) => {
    const server = await startServer(context, { prefix: "/streams/" });
    assert.equal((await server.send("PUT", "/streams/a")).headers["location"], "http://streams.test/streams/a");
    assert.equal((await server.send("GET", "a")).status, 404);
  });
});

describe("CORS: a browser asks what it may send", () => {
  for (const target of ["a", "a%zz", "/health", "/", "/v1/stream/", "*"]) {
    test(`of ${target}`, async (context) => {
      const server = await startServer(context);
      const { status, headers, body } = await server.send("OPTIONS", target, {
        headers: { Origin: "https://a.example", "Access-Control-Request-Method": "PUT" },
      });
      assert.equal(status, 204);
      assert.equal(body.length, 0);
      assert.match(headers["access-control-allow-methods"] ?? "", /PUT/);
      assert.match(headers["access-control-allow-headers"] ?? "", /Producer-Id/);
      assert.equal(headers["access-control-max-age"], "86400");
    });
  }

  test("from one of the origins that may", async (context) => {
    const server = await startServer(context, { corsOrigin: "https://a.example,https://b.example" });
    for (const [origin, allowed] of [
      ["https://b.example", "https://b.example"],
      ["https://c.example", undefined],
    ] as const) {
      const { headers } = await server.send("GET", "a", { headers: { Origin: origin } });
      assert.deepEqual([headers["access-control-allow-origin"], headers["vary"]], [allowed, "Origin"]);
    }
  });
});

describe("a read-only server", () => {
  const options: Partial<ServerOptions> = { readOnly: true };
  for (const method of ["PUT", "POST", "DELETE"]) {
    test(`refuses ${method}`, async (context) => {
      const server = await startServer(context, options);
      const answer = await server.send(method, "a");
      assert.deepEqual([answer.status, codeOf(answer), answer.headers["allow"]], [405, "read-only", "GET, HEAD, OPTIONS"]);
    });
  }

  test("says so for other methods", async (context) => {
    const server = await startServer(context, options);
    assert.equal((await server.send("PATCH", "a")).headers["allow"], "GET, HEAD, OPTIONS");
    assert.equal((await server.send("GET", "a")).status, 404);
  });
});

describe("a request head that can't be understood", () => {
  for (const name of ["Stream-Closed", "Stream-TTL", "Stream-Seq", "Producer-Id", "Content-Type"]) {
    test(`${name} twice is 400`, async (context) => {
      const server = await startServer(context);
      const answer = await server.send("PUT", "a", { headers: { [name]: "1", [name.toLowerCase()]: "1" } });
      assert.deepEqual([answer.status, codeOf(answer)], [400, "invalid-header"]);
      assert.equal((await server.send("HEAD", "a")).status, 404);
    });
  }

  test("HTTP/1.1 without Host is 400, HTTP/1.0 is not", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a");
    for (const [version, status] of [
      ["1.1", 400],
      ["1.0", 200],
    ] as const) {
      const connection = await server.connect();
      connection.write(`HEAD /v1/stream/a HTTP/${version}\r\n\r\n`);
      assert.equal((await connection.answer({ toHead: true })).status, status);
    }
  });
});
