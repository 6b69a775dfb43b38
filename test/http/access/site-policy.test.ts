import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SitePolicy } from "../../../src/http/access/site-policy.js";
import { CorsPolicy } from "../../../src/http/encoding/cors.js";
import type { Exchange } from "../../../src/http/exchange/exchange.js";
import { REQUEST_PATHS, takePath } from "../../helpers/request-paths.js";
import { startServer, type TestServer } from "../../helpers/test-server.js";

/** As the command starts it. */
const BY_DEFAULT = { insecure: false, corsOrigin: "auto" };

describe("without an auth file, a request is for a name of this machine", () => {
  const rows: readonly [host: string, allowHost: string, status: number][] = [
    ["localhost", "", 201],
    ["LOCALHOST:4437", "", 201],
    ["localhost.:80", "", 201],
    ["app.localhost", "", 201],
    ["127.0.0.1:4437", "", 201],
    ["127.9.8.7", "", 201],
    ["[::1]:4437", "", 201],
    ["[::ffff:127.0.0.1]", "", 201],
    ["rebound.example", "", 421],
    ["rebound.example:4437", "", 421],
    ["localhost.example", "", 421],
    ["notlocalhost", "", 421],
    ["127.0.0.1.example", "", 421],
    ["0.0.0.0", "", 421],
    ["192.0.2.1", "", 421],
    ["[::2]", "", 421],
    ["", "", 421],
    ["streams.example", "streams.example", 201],
    ["STREAMS.example:443", "streams.example", 201],
    ["a.streams.example", "streams.example", 421],
    ["a.streams.example", "x.example,*.streams.example", 201],
    ["streams.example", "*.streams.example", 421],
    ["[2001:db8::1]", "2001:db8::1", 201],
  ];
  for (const path of REQUEST_PATHS)
    for (const allowHost of new Set(rows.map(([, allowed]) => allowed)))
      test(`${path}: where "${allowHost}" is allowed`, async (context) => {
        takePath(context, path);
        const server = await startServer(context, { ...BY_DEFAULT, allowHost });
        for (const [host, , status] of rows.filter(([, allowed]) => allowed === allowHost)) {
          const answer = await server.send("PUT", encodeURIComponent(`a ${host}`), { headers: { Host: host } });
          assert.equal(answer.status, status, `Host "${host}"`);
          if (status === 421) assert.match(answer.text, /"code":"host-not-allowed"/);
        }
      });

  for (const target of ["a", "/", "/other", "/v1/stream/"])
    test(`GET of ${target} for another name is refused`, async (context) => {
      const server = await startServer(context, BY_DEFAULT);
      await server.send("PUT", "a", { headers: { Host: "localhost" } });
      assert.equal((await server.send("GET", target, { headers: { Host: "rebound.example" } })).status, 421);
    });

  for (const path of REQUEST_PATHS)
    test(`${path}: an absolute target says which, whatever the Host is`, async (context) => {
      takePath(context, path);
      const server = await startServer(context, { ...BY_DEFAULT, allowHost: "streams.example" });
      for (const [authority, host, status] of [
        ["localhost", "localhost", 201],
        ["rebound.example", "localhost", 421],
        ["rebound.example:4437", "localhost", 421],
        ["localhost@rebound.example", "localhost", 421],
        ["localhost:80@rebound.example", "localhost", 421],
        ["", "localhost", 421],
        ["localhost:4437", "rebound.example", 200],
        ["streams.example", "localhost", 200],
      ] as const) {
        const connection = await server.connect();
        connection.write(`PUT http://${authority}/v1/stream/a HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\n\r\n`);
        assert.equal((await connection.answer()).status, status, `http://${authority}/ with Host ${host}`);
      }
    });

  test("a health probe may have any", async (context) => {
    const server = await startServer(context, BY_DEFAULT);
    assert.equal((await server.send("GET", "/health", { headers: { Host: "pod-7.example" } })).status, 200);
  });

  test("the last one that was fine does not let in the next", async (context) => {
    const server = await startServer(context, BY_DEFAULT);
    for (const [host, status] of [
      ["localhost", 201],
      ["rebound.example", 421],
      ["localhost", 200],
    ] as const)
      assert.equal((await server.send("PUT", "a", { headers: { Host: host } })).status, status);
  });

  test("with --insecure any will do, unless some are listed", async (context) => {
    const open = await startServer(context, { ...BY_DEFAULT, insecure: true });
    assert.equal((await open.send("PUT", "a", { headers: { Host: "streams.example" } })).status, 201);
    const listed = await startServer(context, { ...BY_DEFAULT, insecure: true, allowHost: "streams.example" });
    assert.equal((await listed.send("PUT", "a", { headers: { Host: "other.example" } })).status, 421);
  });
});

/** Sends one request of each kind that changes something, and a read. */
async function assertChanges(server: TestServer, site: Record<"Host" | "Origin", string>, isAllowed: boolean): Promise<void> {
  await server.send("PUT", "there", { headers: { Host: "localhost", "Content-Type": "text/plain" } });
  const headers = { ...site, "Content-Type": "text/plain" };
  for (const [method, target, body] of [
    ["POST", "there", { body: "x" }],
    ["POST", "absent", { body: "x" }],
    ["PUT", "new", { body: "x" }],
    ["DELETE", "there", {}],
  ] as const) {
    const answer = await server.send(method, target, { headers, ...body });
    const what = `${site.Origin} at ${site.Host}: ${method} ${target}: ${answer.text}`;
    assert.equal(answer.text.includes("origin-not-allowed"), !isAllowed, what);
    if (!isAllowed) assert.equal(answer.status, 403, what);
  }
  const read = await server.send("GET", "there?offset=-1", { headers });
  assert.equal(read.status, isAllowed ? 404 : 200, "a read is answered, and only the browser keeps it from the page");
  if (!isAllowed) assert.equal(read.headers["access-control-allow-origin"], undefined);
}

describe("a page may change something", () => {
  const rows: readonly [corsOrigin: string, origin: string, host: string, isAllowed: boolean][] = [
    ["auto", "http://localhost:3000", "localhost:4437", true],
    ["auto", "https://app.localhost", "localhost:4437", true],
    ["auto", "http://127.0.0.1:8080", "localhost:4437", true],
    ["auto", "http://[::1]", "localhost:4437", true],
    ["auto", "https://example.com", "localhost:4437", false],
    ["auto", "http://localhost.example", "localhost:4437", false],
    ["auto", "http://localhost:3000", "streams.example", false],
    ["auto", "http://127.0.0.1:3000", "streams.example:4437", false],
    ["auto", "null", "localhost:4437", false],
    ["auto", "", "localhost:4437", false],
    ["auto", "file://", "localhost:4437", false],
    ["auto", "http://localhost@example.com", "localhost:4437", false],
    ["auto", "http://example.com/.localhost", "localhost:4437", false],
    ["auto", "http://example.com:80.localhost", "localhost:4437", false],
    ["auto", "http://example.com#.localhost", "localhost:4437", false],
    ["auto", "https://streams.example", "streams.example", true],
    ["auto", "https://streams.example:444", "streams.example", false],
    ["auto", "https://streams.example", "streams.example:443", true],
    ["auto", "http://streams.example:80", "Streams.example", true],
    ["auto", "http://streams.example", "streams.example:443", false],
    ["auto", "HTTPS://STREAMS.example", "streams.example", true],
    ["http://localhost:3000", "http://localhost:3000", "streams.example", true],
    ["https://a.example,https://b.example", "https://b.example", "localhost", true],
    ["https://a.example,https://b.example", "https://c.example", "localhost", false],
    ["https://a.example,https://b.example", "http://localhost", "localhost", true],
    ["*", "https://example.com", "localhost", true],
    ["*", "null", "localhost", true],
  ];
  for (const path of REQUEST_PATHS)
    for (const corsOrigin of new Set(rows.map(([setting]) => setting)))
      test(`${path}: with --cors-origin ${corsOrigin}`, async (context) => {
        takePath(context, path);
        const server = await startServer(context, { ...BY_DEFAULT, corsOrigin, allowHost: "streams.example" });
        for (const [, origin, host, isAllowed] of rows.filter(([setting]) => setting === corsOrigin))
          await assertChanges(server, { Host: host, Origin: origin }, isAllowed);
      });

  for (const path of REQUEST_PATHS) {
    test(`${path}: from localhost only where the server is of the same machine`, async (context) => {
      takePath(context, path);
      const server = await startServer(context, { ...BY_DEFAULT, insecure: true });
      const site = { Host: "localhost:4437", Origin: "http://localhost:3000" };
      await assertChanges(server, { ...site, Host: "streams.example" }, false);
      for (const header of ["X-Forwarded-For", "X-Real-IP", "Via"]) await assertChanges(server, { ...site, [header]: "192.0.2.1" }, false);
      await assertChanges(server, site, true);
    });

    test(`${path}: and a long-poll that waits is answered as it would have been at once`, async (context) => {
      takePath(context, path);
      const server = await startServer(context, { ...BY_DEFAULT, longPollTimeoutMs: 12_345 });
      const page = { Host: "localhost", Origin: "http://localhost:3000" };
      await server.send("PUT", "a", { headers: page });
      const passedOn = { ...page, Via: "1.1 proxy" };
      const begin = (headers: Record<string, string>) => server.begin("GET", "a?live=long-poll&offset=now", { headers });
      const waiting = await Promise.all([begin(page), begin(passedOn)]);
      await server.clock.armed(12_345, { count: 2 });
      server.clock.advance(12_345);
      const answers = await Promise.all(waiting.map((connection) => connection.answer()));
      assert.deepEqual(
        answers.map(({ status, headers }) => [status, headers["access-control-allow-origin"]]),
        [
          [204, page.Origin],
          [204, undefined],
        ],
      );
    });
  }

  test("a rebound name makes no page one of ours, with --insecure; an address does, which nobody can rebind", async (context) => {
    const server = await startServer(context, { ...BY_DEFAULT, insecure: true });
    const put = (Host: string, Origin: string) => server.send("PUT", encodeURIComponent(Host), { headers: { Host, Origin } });
    const rebound = await put("rebound.example", "http://rebound.example");
    assert.equal(rebound.status, 403);
    assert.match(rebound.text, /where --allow-host names it/);
    assert.match((await put("192.0.2.1", "http://192.0.2.2")).text, /--cors-origin lists the origins that may/);
    assert.equal((await put("192.0.2.1:4437", "http://192.0.2.1:4437")).status, 201);
    assert.equal((await put("[2001:db8::1]", "http://[2001:db8::1]")).status, 201);
    assert.equal((await put("192.0.2.1:4437", "http://192.0.2.1:4438")).status, 403);
  });

  test("a preflight lists methods and headers to anybody, and lets in only who may", async (context) => {
    const server = await startServer(context, BY_DEFAULT);
    for (const [origin, allowed] of [
      ["http://localhost:1", "http://localhost:1"],
      ["https://example.com", undefined],
    ] as const) {
      const headers = { Host: "localhost", Origin: origin, "Access-Control-Request-Method": "PUT" };
      const answer = await server.send("OPTIONS", "a", { headers });
      assert.deepEqual([answer.status, answer.headers["access-control-allow-origin"]], [204, allowed]);
      assert.match(answer.headers["access-control-allow-headers"] ?? "", /Producer-Id/);
    }
  });

  test("thousands of origins take no memory for good", async (context) => {
    const server = await startServer(context, BY_DEFAULT);
    for (let port = 1; port < 200; port += 1) {
      const answer = await server.send("GET", "a", { headers: { Host: "localhost", Origin: `http://localhost:${port}` } });
      assert.equal(answer.headers["access-control-allow-origin"], `http://localhost:${port}`);
    }
  });
});

describe("a Host is not looked at", () => {
  const policy = new SitePolicy({ cors: new CorsPolicy("*"), allowHost: "", checksHosts: true, isCertifiedFor: () => false });
  const refusalFor = (socket: object): string | null => {
    const exchange = { req: { socket }, headers: { host: "rebound.example" } };
    return policy.refusalOfHost(exchange as Exchange)?.code ?? null; // all that it looks at
  };

  test("where the connection came by a Unix socket, which no browser reaches", () => assert.equal(refusalFor({ destroyed: false }), null));
  test("and it is where the client of a port has gone, and its address with it", () => {
    assert.equal(refusalFor({ destroyed: false, localAddress: "127.0.0.1" }), "host-not-allowed");
    assert.equal(refusalFor({ destroyed: true }), "host-not-allowed");
  });
});

describe("a page of the server's own name", () => {
  const cors = new CorsPolicy("https://other.example");
  const policy = new SitePolicy({ cors, allowHost: "streams.example", checksHosts: false, isCertifiedFor: () => false });
  const TLS = { encrypted: true };
  for (const [origin, socket, forwardedProto, isAllowed] of [
    ["https://streams.example", {}, null, true],
    ["http://streams.example", {}, null, true],
    ["https://streams.example", TLS, null, true],
    ["http://streams.example", TLS, null, false],
    ["http://localhost", TLS, null, false],
    ["https://streams.example", {}, "https", true],
    ["http://streams.example", {}, "https", false],
    ["http://streams.example", {}, "HTTPS, http", false],
    ["http://localhost", {}, "https", false],
    ["http://streams.example", {}, "http", true],
    ["http://streams.example", TLS, "http", true],
    ["http://streams.example", TLS, "javascript", false],
  ] as const) {
    const way = `${"encrypted" in socket ? "over TLS" : "without TLS"}, X-Forwarded-Proto ${forwardedProto}`;
    test(`${isAllowed ? "may" : "may not"} change something from ${origin} ${way}`, () => {
      const exchange = { req: { socket }, headers: { host: origin.replace(/^.*\//, ""), origin, forwardedProto } };
      const refusalOf = (isAmbient: boolean) => policy.refusalOfOrigin(exchange as Exchange, isAmbient); // all that it looks at
      for (const isAmbient of [true, false]) assert.equal(refusalOf(isAmbient) === null, isAllowed);
    });
  }

  for (const path of REQUEST_PATHS)
    for (const [trustProxy, status] of [
      ["127.0.0.0/8", 403],
      ["", 201],
    ] as const)
      test(`${path}: is one of https:// where ${trustProxy === "" ? "nobody" : "a proxy"} is believed to end TLS: ${status}`, async (context) => {
        takePath(context, path);
        const server = await startServer(context, { insecure: true, corsOrigin: "auto", allowHost: "streams.example", trustProxy });
        const headers = { Host: "streams.example", Origin: "http://streams.example", "X-Forwarded-Proto": "https" };
        assert.equal((await server.send("PUT", "a", { headers })).status, status);
        assert.equal((await server.send("PUT", "b", { headers: { ...headers, Origin: "https://streams.example" } })).status, 201);
      });
});
