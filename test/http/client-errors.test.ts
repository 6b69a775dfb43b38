import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ClientErrors } from "../../src/http/client-errors.js";
import { StagedEnds } from "../../src/http/staged-end.js";
import { httpParts } from "../helpers/http-parts.js";
import { ALL_PATHS, takePath } from "../helpers/request-paths.js";
import { socketPair } from "../helpers/socket-pair.js";
import { follow, nextPair } from "../helpers/sse-client.js";
import { requestBytes, startServer } from "../helpers/test-server.js";

/** Unlike every other time that the server waits. */
const TIMEOUT_MS = 12_345;
const HOST = "Host: a\r\n";
const POST = `POST /v1/stream/a HTTP/1.1\r\n${HOST}Content-Type: application/octet-stream\r\n`;

test("a client that resets its connection after a CONNECT harms nobody else", async (context) => {
  const server = await startServer(context);
  // When the reset comes is up to the system: some of these meet the answer.
  for (let round = 0; round < 50; round += 1) {
    const connection = await server.connect();
    connection.write(`CONNECT example.com:443 HTTP/1.1\r\n${HOST}\r\n`);
    if (round % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
    connection.socket.resetAndDestroy();
    await server.send("GET", "/health");
  }
});

describe("a client that goes on sending after HTTP broke", () => {
  test("gets its answer, and is cut after a while", async (context) => {
    const server = await startServer(context);
    const connection = await server.connect();
    connection.write("hello\r\n\r\n");
    assert.equal((await connection.answer()).status, 400);
    connection.write("more");
    server.clock.advance(5000);
    await connection.rest();
    while (!connection.socket.destroyed) {
      connection.write("x");
      await server.send("GET", "/health");
    }
  });

  test("is cut at once when it sends much", async (context) => {
    const server = await startServer(context);
    const connection = await server.connect();
    connection.write("hello\r\n\r\n");
    connection.write(Buffer.alloc(4 * 1024 * 1024));
    await connection.rest();
    while (!connection.socket.destroyed) {
      connection.write("x");
      await server.send("GET", "/health");
    }
  });
});

describe("a body that breaks after its answer leaves the answer whole", () => {
  const BROKEN_BODY = `${HOST}Transfer-Encoding: chunked\r\n\r\nnonsense\r\n`;
  for (const path of ALL_PATHS) {
    test(`where the request was refused by its head, on the ${path} path`, async (context) => {
      takePath(context, path);
      const server = await startServer(context);
      const connection = await server.connect();
      connection.write(`PUT /v1/stream/a//b HTTP/1.1\r\n${BROKEN_BODY}`);
      const { status, text } = await connection.answer();
      assert.deepEqual([status, JSON.parse(text).code], [400, "invalid-name"]);
      assert.equal(await connection.rest(), "");
    });

    test(`where nobody wanted it, on the ${path} path`, async (context) => {
      takePath(context, path);
      const server = await startServer(context, { chunkBytes: 8 * 1024 * 1024 });
      const stored = Buffer.alloc(8 * 1024 * 1024, "x");
      await server.send("PUT", "a", { body: stored });
      const connection = await server.connect();
      connection.write(`GET /v1/stream/a HTTP/1.1\r\n${BROKEN_BODY}`);
      assert.ok((await connection.answer()).body.equals(stored));
      assert.equal(await connection.rest(), "");
    });
  }
});

test("a request whose client ends its side half-way is 400", async (context) => {
  const server = await startServer(context);
  await server.send("PUT", "a");
  for (const bytes of [`${POST}Content-Length: 10\r\n\r\nhello`, `${POST}Transfer-Encoding: chunked\r\n\r\n5\r\nhel`, "GET /v1/str"]) {
    const connection = await server.connect();
    connection.write(bytes);
    connection.socket.end();
    const answer = await connection.answer();
    assert.deepEqual([answer.status, JSON.parse(answer.text).code], [400, "body-incomplete"]);
  }
  assert.equal((await server.send("GET", "a")).text, "");
});

describe("nonsense after a request", () => {
  test("is answered behind the answer to that request", async (context) => {
    const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
    await server.send("PUT", "a");
    const connection = await server.begin("GET", "a?live=long-poll&offset=now");
    connection.write(requestBytes("HEAD", "a"));
    connection.write("nonsense\r\n\r\n");
    await server.clock.armed(TIMEOUT_MS);
    connection.write("and more of it");
    server.clock.advance(TIMEOUT_MS);
    assert.equal((await connection.answer()).status, 204);
    assert.equal((await connection.answer({ toHead: true })).status, 200);
    assert.equal((await connection.answer()).status, 400);
    assert.equal(await connection.rest(), "");
  });

  test("does not get into an answer that goes on", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: { "Content-Type": "text/plain" }, body: "hello" });
    const connection = await follow(server, "a?live=sse&offset=-1");
    connection.write("nonsense\r\n\r\n");
    assert.equal((await nextPair(connection)).data, "hello");
    await server.send("DELETE", "a");
    assert.equal(await connection.rest(), "");
  });

  test("does not make an append look refused", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a");
    const connection = await server.connect();
    connection.write(`${POST}Content-Length: 5\r\n\r\nhello, longer than promised\r\n\r\n`);
    assert.equal((await connection.answer()).status, 204);
    assert.equal((await connection.answer()).status, 400);
    assert.equal((await server.send("GET", "a")).text, "hello");
  });
});

describe("what is no request is counted", () => {
  const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;
  for (const [title, bytes, code, ...others] of [
    ["nonsense", "nonsense\r\n\r\n", "bad-request", 400],
    ["a head that is too large", `GET / HTTP/1.1\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, "header-too-large", 431],
    ["an unknown method", `FOO /v1/stream/a HTTP/1.1\r\n${HOST}\r\n`, "method-not-allowed", 405],
    ["CONNECT", `CONNECT a:1 HTTP/1.1\r\n${HOST}\r\n`, "method-not-allowed", 405],
    // The request is an append, and ends with its connection.
    ["a body that is no chunks", `${CHUNKED}nonsense\r\n`, "bad-request"],
  ] as const)
    test(title, async (context) => {
      const server = await startServer(context);
      await server.send("PUT", "a");
      const connection = await server.connect();
      connection.write(bytes);
      assert.equal(JSON.parse((await connection.answer()).text).code, code);
      assert.equal(await connection.rest(), "");
      const { text } = await server.send("GET", "/metrics");
      assert.ok(text.includes(`\nstreamdir_refusals_total{code="${code}"} 1\n`));
      assert.deepEqual(
        Array.from(text.matchAll(/^streamdir_requests_total\{operation="other",code="(.*)"\} 1$/gm), ([, status]) => Number(status)),
        others,
      );
    });

  test("and HTTP/2 without TLS is told where that is served", async (context) => {
    const server = await startServer(context);
    const connection = await server.connect();
    connection.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    const { status, text } = await connection.answer();
    assert.deepEqual([status, JSON.parse(text).detail], [400, "HTTP/2 is served by TLS only; this address takes HTTP/1.1."]);
  });

  test("but not a connection that is one too many", async (context) => {
    const server = await startServer(context, { maxConnectionsPerClient: 1 });
    const served = await server.connect();
    const refused = await server.connect();
    assert.equal((await refused.answer()).status, 503);
    served.write(requestBytes("GET", "/metrics"));
    const { text } = await served.answer();
    assert.match(text, /^streamdir_connections_refused_total\{limit="client"\} 1$/m);
    assert.match(text, /^streamdir_refusals_total\{code="overloaded"\} 0$/m);
  });
});

describe("a fault that Node reports", () => {
  function clientErrors(): ClientErrors {
    const { responder, clock } = httpParts();
    return new ClientErrors(responder, new StagedEnds(clock), () => null);
  }

  for (const [code, status] of [
    ["ERR_HTTP_REQUEST_TIMEOUT", 408],
    ["HPE_HEADER_OVERFLOW", 431],
    ["SOMETHING_NEW", 400],
  ] as const) {
    test(`${code} is ${status}`, async (context) => {
      const { client, socket } = await socketPair(context);
      clientErrors().answer(Object.assign(new Error("fault"), { code }), socket);
      assert.equal((await client.answer()).status, status);
      assert.equal(await client.rest(), "");
    });
  }

  test("on a connection that is gone is passed over", async (context) => {
    const { socket } = await socketPair(context);
    socket.destroy();
    clientErrors().answer(Object.assign(new Error("reset"), { code: "ECONNRESET" }), socket);
  });
});
