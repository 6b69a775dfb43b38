import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CorsPolicy, PREFLIGHT_HEADERS } from "../../../src/http/encoding/cors.js";
import { REQUEST_PATHS, takePath } from "../../helpers/request-paths.js";
import { requestBytes, startServer } from "../../helpers/test-server.js";

function asRecord(flat: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {};
  for (let at = 0; at < flat.length; at += 2) record[flat[at] ?? ""] = flat[at + 1] ?? "";
  return record;
}

/** A request to a server on the browser's machine. */
function from(origin: string | null, seemsProxied = false): { origin: string | null; seemsProxied: boolean } {
  return { origin, seemsProxied };
}

describe("CORS: any origin may call", () => {
  const policy = new CorsPolicy("*");
  for (const origin of [null, "https://a.example"]) {
    test(`asked from ${origin}`, () => {
      const headers = asRecord(policy.headersFor(from(origin)).list);
      assert.equal(headers["Access-Control-Allow-Origin"], "*");
      assert.equal(headers["Vary"], undefined);
      assert.equal(headers["X-Content-Type-Options"], "nosniff");
      assert.equal(headers["Cross-Origin-Resource-Policy"], "cross-origin");
      assert.equal(headers["Content-Security-Policy"], "sandbox; default-src 'none'");
    });
  }
});

describe("CORS: some origins may call", () => {
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
      const headers = asRecord(policy.headersFor(from(origin)).list);
      assert.equal(headers["Access-Control-Allow-Origin"], allowed);
      assert.equal(headers["Access-Control-Expose-Headers"] !== undefined, allowed !== undefined);
      assert.equal(headers["Vary"], "Origin");
      assert.equal(headers["X-Content-Type-Options"], "nosniff");
      assert.equal(headers["Content-Security-Policy"], "sandbox; default-src 'none'");
    });
  }
});

describe("CORS: pages of this machine may call", () => {
  const policy = new CorsPolicy("loopback");
  for (const [origin, seemsProxied, isAllowed] of [
    ["http://localhost:3000", false, true],
    ["https://app.localhost", false, true],
    ["http://[::1]", false, true],
    // The second time from what is kept.
    ["http://localhost:3000", true, false],
    ["http://localhost:3000", false, true],
    ["https://app.example", false, false],
    ["null", false, false],
    [null, false, false],
  ] as const)
    test(`${origin}, ${seemsProxied ? "through a proxy" : "to this machine"}: ${isAllowed ? "yes" : "no"}`, () => {
      const asking = from(origin, seemsProxied);
      assert.equal(asRecord(policy.headersFor(asking).list)["Access-Control-Allow-Origin"], isAllowed ? origin : undefined);
      assert.deepEqual([policy.allows(asking), policy.names(asking)], [isAllowed, isAllowed]);
    });

  test("those that are listed may through a proxy too", () => {
    for (const setting of ["http://localhost:3000", "*"])
      assert.equal(new CorsPolicy(setting).allows(from("http://localhost:3000", true)), true);
  });
});

for (const path of REQUEST_PATHS)
  test(`an answer that depends on more than its origin says all of it in one line, on the ${path} path`, async (context) => {
    takePath(context, path);
    const server = await startServer(context, { corsOrigin: "https://a.example", compress: true });
    await server.send("PUT", "a", { headers: { "Content-Type": "text/plain" } });
    for (const [target, vary] of [
      ["a?offset=-1", "Origin, Accept-Encoding"],
      ["a", "*"],
      ["missing", "Origin"],
    ] as const) {
      const connection = await server.connect();
      connection.write(requestBytes("GET", target));
      const head = await connection.until("\r\n\r\n");
      assert.deepEqual(head.match(/(?<=^Vary: ).*$/gim), [vary]);
    }
  });

test("a browser may read every protocol header of an answer", () => {
  const exposed = asRecord(new CorsPolicy("*").headersFor(from(null)).list)["Access-Control-Expose-Headers"]?.split(", ");
  const needed = [
    "ETag",
    "Location",
    "Producer-Epoch",
    "Producer-Expected-Seq",
    "Producer-Received-Seq",
    "Producer-Seq",
    "Retry-After",
    "Stream-Closed",
    "Stream-Cursor",
    "Stream-Expires-At",
    "Stream-Next-Offset",
    "Stream-SSE-Data-Encoding",
    "X-Request-Id",
    "Stream-TTL",
    "Stream-Up-To-Date",
    "WWW-Authenticate",
  ];
  for (const name of needed) assert.ok(exposed?.includes(name), name);
});

test("a browser may send every protocol header of a request", () => {
  const headers = asRecord(PREFLIGHT_HEADERS);
  const needed = [
    "Authorization",
    "Content-Type",
    "If-None-Match",
    "Last-Event-ID",
    "Producer-Epoch",
    "Producer-Id",
    "Producer-Seq",
    "Stream-Closed",
    "Stream-Expires-At",
    "Stream-Seq",
    "Stream-TTL",
  ];
  for (const name of needed) assert.ok(headers["Access-Control-Allow-Headers"]?.split(", ").includes(name), name);
  assert.equal(headers["Access-Control-Allow-Methods"], "GET, HEAD, PUT, POST, DELETE, OPTIONS");
  assert.match(headers["Access-Control-Max-Age"] ?? "", /^\d+$/);
});

/** Unlike every other time that the server waits. */
const TIMEOUT_MS = 12_345;
/** Most requests that wait on one connection. */
const MAX_WAITING = 256;

describe("CORS: a page learns why its request was refused", () => {
  const ORIGIN = "https://a.example";
  const PAGE = { Origin: ORIGIN, Host: "streams.test" };
  const OCTETS = { ...PAGE, "Content-Type": "application/octet-stream" };
  const get = (target: string, headers: Record<string, string> = {}): Buffer =>
    requestBytes("GET", target, { headers: { ...PAGE, ...headers } });
  const refusals: readonly (readonly [status: number, what: string, request: string | Buffer])[] = [
    [400, "no HTTP", "hello\r\n\r\n"],
    [400, "a header without a colon", `GET /v1/stream/a HTTP/1.1\r\nHost: a\r\nOrigin: ${ORIGIN}\r\nnonsense\r\n\r\n`],
    [
      400,
      "a chunk without a length",
      `POST /v1/stream/a HTTP/1.1\r\nHost: a\r\nOrigin: ${ORIGIN}\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n`,
    ],
    [400, "a wrong offset", get("a?offset=x")],
    [400, "a wrong name", get("a//b")],
    [404, "no stream", get("none")],
    [404, "no such path", get("/elsewhere")],
    [405, "an unknown method", requestBytes("PATCH", "a", { headers: PAGE })],
    [405, "a method that the parser does not know", requestBytes("FETCH", "a", { headers: PAGE })],
    [405, "a tunnel", `CONNECT a:80 HTTP/1.1\r\nHost: a\r\nOrigin: ${ORIGIN}\r\n\r\n`],
    [409, "another content type", requestBytes("POST", "a", { headers: { ...PAGE, "Content-Type": "text/html" }, body: "x" })],
    [413, "a large body", requestBytes("POST", "a", { headers: OCTETS, body: "x".repeat(11) })],
    [417, "an expectation", get("a", { Expect: "more" })],
    [431, "a large head", get("a", { X: "x".repeat(17 * 1024) })],
    [501, "a coding", requestBytes("POST", "a", { headers: { ...OCTETS, "Transfer-Encoding": "gzip, chunked" } })],
  ];
  for (const corsOrigin of ["*", `https://b.example,${ORIGIN}`]) {
    const allowed = (origin: string | undefined): void => assert.ok(origin === "*" || origin === ORIGIN, `origin ${origin}`);
    const assertReadable = (headers: Readonly<Record<string, string>>): void => {
      allowed(headers["access-control-allow-origin"]);
      for (const name of ["Retry-After", "WWW-Authenticate", "Allow"])
        assert.match(headers["access-control-expose-headers"] ?? "", new RegExp(`\\b${name}\\b`));
    };

    test(`whatever it is, where ${corsOrigin} may call`, async (context) => {
      const server = await startServer(context, { corsOrigin, maxAppendBytes: 10 });
      await server.send("PUT", "a");
      for (const [status, what, request] of refusals) {
        const connection = await server.connect();
        connection.write(request);
        const answer = await connection.answer();
        assert.equal(answer.status, status, what);
        assertReadable(answer.headers);
      }
    });

    test(`for its slowness, where ${corsOrigin} may call`, async (context) => {
      const server = await startServer(context, { corsOrigin }, { headersTimeout: 1, requestTimeout: 1, connectionsCheckingInterval: 1 });
      const connection = await server.connect();
      connection.write(`GET /v1/stream/a HTTP/1.1\r\nOrigin: ${ORIGIN}\r\n`);
      const answer = await connection.answer();
      assert.equal(answer.status, 408);
      assertReadable(answer.headers);
    });

    test(`because the server has too much to do, where ${corsOrigin} may call`, async (context) => {
      const server = await startServer(context, { corsOrigin, longPollTimeoutMs: TIMEOUT_MS });
      await server.send("PUT", "a");
      const connection = await server.begin("GET", "a?live=long-poll&offset=now", { headers: PAGE });
      await server.clock.armed(TIMEOUT_MS);
      connection.write(
        get("a")
          .toString()
          .repeat(MAX_WAITING + 1),
      );
      await server.send("HEAD", "a");
      server.clock.advance(TIMEOUT_MS);
      for (let at = 0; at <= MAX_WAITING; at += 1) assertReadable((await connection.answer()).headers);
      const { status, headers } = await connection.answer();
      assert.equal(status, 503);
      assertReadable(headers);
    });
  }
});
