import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createSocketServer, type AddressInfo, type Socket } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { ClientErrors } from "../../src/http/client-errors.js";
import { httpParts } from "../helpers/http-parts.js";
import { RawConnection } from "../helpers/raw-connection.js";
import { follow, nextPair } from "../helpers/sse-client.js";
import { requestBytes, startServer } from "../helpers/test-server.js";

/** Unlike every other time that the server waits. */
const TIMEOUT_MS = 12_345;
const HOST = "Host: a\r\n";
const POST = `POST /v1/stream/a HTTP/1.1\r\n${HOST}Content-Type: application/octet-stream\r\n`;

/** What is not HTTP, and the answer that it gets before its connection is closed. */
const BROKEN: readonly (readonly [title: string, bytes: string, status: number, code: string])[] = [
  ["no request line", "hello\r\n\r\n", 400, "bad-request"],
  ["bytes of another protocol", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "bad-request"],
  ["an unknown version", "GET / HTTP/9.9\r\n\r\n", 400, "bad-request"],
  ["a path with a space", `GET /a b HTTP/1.1\r\n${HOST}\r\n`, 400, "bad-request"],
  ["a path with a NUL", `GET /v1/stream/a\x00 HTTP/1.1\r\n${HOST}\r\n`, 400, "bad-request"],
  ["a header without a colon", `GET / HTTP/1.1\r\n${HOST}nonsense\r\n\r\n`, 400, "bad-request"],
  ["a header's name with a space", `GET / HTTP/1.1\r\n${HOST}Stream Seq: 1\r\n\r\n`, 400, "bad-request"],
  ["a header's value with a NUL", `GET / HTTP/1.1\r\n${HOST}Stream-Seq: a\x00b\r\n\r\n`, 400, "bad-request"],
  ["a header's value with a lone CR", `GET / HTTP/1.1\r\n${HOST}Stream-Seq: a\rb\r\n\r\n`, 400, "bad-request"],
  ["a header in two lines", `GET / HTTP/1.1\r\n${HOST}Stream-Seq: a\r\n b\r\n\r\n`, 400, "bad-request"],
  ["Content-Length and Transfer-Encoding", `${POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400, "bad-request"],
  ["Transfer-Encoding and Content-Length", `${POST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`, 400, "bad-request"],
  ["an encoding that is not chunked at last", `${POST}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`, 400, "bad-request"],
  ["two lengths", `${POST}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`, 400, "bad-request"],
  ["a negative length", `${POST}Content-Length: -1\r\n\r\n`, 400, "bad-request"],
  ["a length with a sign", `${POST}Content-Length: +5\r\n\r\nhello`, 400, "bad-request"],
  ["a length beyond all numbers", `${POST}Content-Length: 99999999999999999999\r\n\r\n`, 400, "bad-request"],
  ["a chunk without a length", `${POST}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`, 400, "bad-request"],
  ["a chunk that is longer than it says", `${POST}Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n`, 400, "bad-request"],
  ["an endless chunk extension", `${POST}Transfer-Encoding: chunked\r\n\r\n2;${"x".repeat(20_000)}`, 413, "body-too-large"],
  ["a header of 16 KiB", `GET / HTTP/1.1\r\n${HOST}X: ${"x".repeat(16 * 1024)}\r\n\r\n`, 431, "header-too-large"],
  ["ten thousand headers", `GET / HTTP/1.1\r\n${HOST}${"X: x\r\n".repeat(10_000)}\r\n`, 431, "header-too-large"],
  ["a path of 17 KiB", `GET /${"x".repeat(17 * 1024)} HTTP/1.1\r\n${HOST}\r\n`, 431, "header-too-large"],
  ["CONNECT", `CONNECT example.com:443 HTTP/1.1\r\n${HOST}\r\n`, 405, "method-not-allowed"],
  ["a method that nobody knows", `FOO /v1/stream/a HTTP/1.1\r\n${HOST}\r\n`, 405, "method-not-allowed"],
  ["a method in small letters", `get /v1/stream/a HTTP/1.1\r\n${HOST}\r\n`, 405, "method-not-allowed"],
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "bad-request"],
];

describe("what is not HTTP is told so, and its connection closed", () => {
  for (const [title, bytes, status, code] of BROKEN) {
    test(title, async (context) => {
      const server = await startServer(context);
      await server.send("PUT", "a");
      const connection = await server.connect();
      connection.write(bytes);
      const answer = await connection.answer();
      assert.deepEqual([answer.status, JSON.parse(answer.text).code], [status, code]);
      assert.equal(answer.headers["content-type"], "application/problem+json");
      assert.equal(answer.headers["connection"], "close");
      assert.equal(answer.headers["x-content-type-options"], "nosniff");
      assert.equal(await connection.rest(), "");
      assert.equal((await server.send("GET", "a")).text, "", "nothing was appended");
    });
  }
});

test("a client that resets its connection behind a CONNECT harms nobody else", async (context) => {
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

describe("nonsense behind a request", () => {
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

describe("a fault that Node reports", () => {
  /** Both ends of a connection, without HTTP on it. */
  async function socketPair(context: TestContext): Promise<{ client: RawConnection; socket: Socket }> {
    const listener = createSocketServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    const accepted = once(listener, "connection");
    const client = await RawConnection.open((listener.address() as AddressInfo).port);
    const [socket]: Socket[] = await accepted;
    assert.ok(socket !== undefined);
    context.after(async () => {
      await client.close();
      socket.destroy();
      listener.close();
    });
    return { client, socket };
  }

  function clientErrors(): ClientErrors {
    const { responder, clock } = httpParts();
    return new ClientErrors(responder, clock, () => null);
  }

  for (const [code, status] of [["ERR_HTTP_REQUEST_TIMEOUT", 408], ["HPE_HEADER_OVERFLOW", 431], ["SOMETHING_NEW", 400]] as const) {
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
