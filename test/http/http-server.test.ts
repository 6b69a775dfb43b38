import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, test, type TestContext } from "node:test";
import { Clients } from "../../src/http/bounds/clients.js";
import { ConnectionsByClient } from "../../src/http/bounds/connections-by-client.js";
import { connectionLimitFor } from "../../src/http/bounds/connection-limit.js";
import type { DirectConnection } from "../../src/http/node/direct-connection.js";
import type { Dispatcher } from "../../src/http/dispatch.js";
import { Exchange } from "../../src/http/exchange/exchange.js";
import { HttpServer, REQUEST_LIMITS } from "../../src/http/http-server.js";
import { readHeaders } from "../../src/http/request/request-headers.js";
import { createLog } from "../../src/ops/log.js";
import { httpParts } from "../helpers/http-parts.js";
import { RawConnection } from "../helpers/raw-connection.js";
import { ALL_PATHS, takePath } from "../helpers/request-paths.js";
import { requestBytes, startServer } from "../helpers/test-server.js";
import { keptLog } from "../helpers/engine.js";

/** Unlike every other time that the server waits. */
const TIMEOUT_MS = 12_345;
const OCTETS = { "Content-Type": "application/octet-stream" };

/** A connection to a server whose requests the test handles. */
async function connectionHandledBy(
  context: TestContext,
  handlers: Pick<Dispatcher, "handle" | "handleDirect">,
  parts = httpParts(),
): Promise<RawConnection> {
  const { clock, responder } = parts;
  const dispatcher = { ...handlers, waitingOn: () => [] } as unknown as Dispatcher; // nothing else is asked of it
  const clients = new Clients("", keptLog().log);
  const server = new HttpServer({
    dispatcher,
    responder,
    clock,
    log: createLog({ level: "silent", format: "text", clock, write: () => undefined }),
    connectionLimit: connectionLimitFor(Infinity),
    connectionsByClient: new ConnectionsByClient(Infinity, clients),
    clients,
  });
  const addresses = [{ kind: "tcp", host: "127.0.0.1", port: 0 }] as const;
  const [listener] = await server.listen({ addresses, unixMode: 0o600, reach: "loopback", tls: null });
  const connection = await RawConnection.open(listener?.port ?? 0);
  context.after(async () => {
    await connection.close();
    await server.close();
  });
  return connection;
}

describe("a connection of the HTTP server", () => {
  test("carries one request after the other", async (context) => {
    const server = await startServer(context);
    const connection = await server.connect();
    for (const [method, status] of [
      ["PUT", 201],
      ["PUT", 200],
      ["HEAD", 200],
      ["DELETE", 204],
      ["GET", 404],
    ] as const) {
      connection.write(requestBytes(method, "a"));
      const answer = await connection.answer({ toHead: method === "HEAD" });
      assert.deepEqual([answer.status, answer.headers["connection"], answer.headers["keep-alive"]], [status, "keep-alive", "timeout=75"]);
    }
  });

  test("of an HTTP/1.0 client ends after one", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { body: "hello" });
    const connection = await server.connect();
    connection.write("GET /v1/stream/a HTTP/1.0\r\n\r\n");
    const { headers, text } = await connection.answer();
    assert.deepEqual([text, headers["connection"]], ["hello", "close"]);
    assert.equal(await connection.rest(), "");
  });

  test("gets all its answers where its client has ended its side behind the last request", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { headers: { "Content-Type": "text/plain" } });
    const connection = await server.connect();
    connection.socket.end(requestBytes("GET", "a").toString().repeat(100));
    assert.equal((await connection.rest()).match(/HTTP\/1\.1 200 OK/g)?.length, 100);
  });

  for (const isDirect of [true, false])
    test(`gets the ${isDirect ? "direct " : ""}answer that waits for others of its turn, also where its end is known before the turn is over`, async (context) => {
      const parts = httpParts();
      const handle = (req: IncomingMessage, answer: ServerResponse | DirectConnection): void => {
        const exchange = new Exchange(req, answer, { path: "/", query: "" }, readHeaders(req.rawHeaders), false);
        exchange.direct?.begin(exchange);
        exchange.arriving = true;
        parts.responder.send(exchange, 200, [], Buffer.from("hello"));
        // As where so many connections have news that one turn does not see them all.
        process.nextTick(() => req.socket.emit("end"));
      };
      const handleDirect = (req: IncomingMessage, connection: DirectConnection): boolean => {
        if (isDirect) handle(req, connection);
        return isDirect;
      };
      const connection = await connectionHandledBy(context, { handle, handleDirect }, parts);
      connection.write(requestBytes("GET", "/"));
      assert.match(await connection.rest(), /hello$/);
    });

  test("that asks for another protocol is answered in this one", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { body: "hello" });
    const { status, headers, text } = await server.send("GET", "a", { headers: { Connection: "Upgrade", Upgrade: "websocket" } });
    assert.deepEqual([status, headers["connection"], text], [200, "close", "hello"]);
  });

  for (const path of ALL_PATHS) {
    test(`that asks for another protocol has nothing done that comes behind it, on the ${path} path`, async (context) => {
      takePath(context, path);
      const server = await startServer(context, { longPollTimeoutMs: TIMEOUT_MS });
      await server.send("PUT", "a");
      const connection = await server.begin("GET", "a?live=long-poll&offset=now", {
        headers: { Connection: "Upgrade", Upgrade: "websocket" },
      });
      await server.clock.armed(TIMEOUT_MS);
      // In a packet of its own: the parser drops what is in the same one.
      connection.write(requestBytes("DELETE", "a"));
      await server.send("HEAD", "a");
      server.clock.advance(TIMEOUT_MS);
      assert.equal((await connection.answer()).status, 204);
      assert.equal(await connection.rest(), "");
      assert.equal((await server.send("HEAD", "a")).status, 200);
    });
  }

  test("has nothing done that comes behind its last answer", async (context) => {
    const handled: string[] = [];
    const gone: Promise<unknown>[] = [];
    const handle = (req: IncomingMessage): void => {
      handled.push(req.url ?? "");
      gone.push(once(req.socket, "close"));
      // As Node does behind the last answer; what comes meanwhile is still read.
      req.socket.end("the last answer");
    };
    const handleDirect = (req: IncomingMessage): boolean => {
      handle(req);
      return true;
    };
    const connection = await connectionHandledBy(context, { handle, handleDirect });
    connection.write(requestBytes("GET", "/first"));
    await connection.until("the last answer");
    for (const more of [{}, { headers: { Expect: "100-continue" } }, { headers: { Connection: "close" } }])
      connection.write(requestBytes("GET", "/behind", more));
    connection.socket.end();
    await Promise.all(gone);
    assert.deepEqual(handled, ["/first"]);
  });

  test("may send 256 headers, and each of them counts", async (context) => {
    const server = await startServer(context);
    const connection = await server.connect();
    // The one that counts comes last.
    connection.write(`PUT /v1/stream/a HTTP/1.1\r\nHost: a\r\n${"a:b\r\n".repeat(254)}Stream-TTL: x\r\n\r\n`);
    assert.equal((await connection.answer()).status, 400);
  });

  for (const [what, more, behind] of [
    ["one more", 0, "\r\n"],
    ["thousands, of which one promises a body", 2300, "Content-Length: 5\r\n\r\nhello"],
    ["thousands, of which one promises a body in chunks", 2300, "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["thousands, of which one asks for another protocol", 2300, "Connection: Upgrade\r\nUpgrade: other\r\n\r\n"],
  ] as const)
    for (const path of ALL_PATHS)
      test(`is over when it sends ${what}, on the ${path} path`, async (context) => {
        takePath(context, path);
        const server = await startServer(context);
        const connection = await server.connect();
        const [pad, inside] = ["a:b\r\n".repeat(256 + more), requestBytes("PUT", "inside")];
        connection.write(`POST /v1/stream/a HTTP/1.1\r\nHost: a\r\n${pad}${behind}${inside}`);
        const { status, text, headers } = await connection.answer();
        assert.deepEqual([status, JSON.parse(text).code, headers["connection"]], [431, "header-too-large", "close"]);
        assert.equal(await connection.rest(), "");
        assert.equal((await server.send("HEAD", "inside")).status, 404);
      });
});

describe("a server that stops", () => {
  test("lets go of idle connections, and after a second of those that were never used", async (context) => {
    const server = await startServer(context);
    const unused = await server.connect();
    const idle = await server.begin("GET", "/health");
    await idle.answer();
    for (const { socket } of [unused, idle]) socket.on("end", () => socket.end());
    server.clock.advance(REQUEST_LIMITS.nextRequestTimeout);
    const idleGone = once(idle.socket, "close");
    const closed = server.server.close();
    await idleGone;
    const unusedGone = once(unused.socket, "close");
    server.clock.advance(REQUEST_LIMITS.firstRequestTimeout);
    await Promise.all([closed, unusedGone]);
  });

  test("answers the next request of a connection that it has just answered, for the last time", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a", { body: Buffer.alloc(16 * 1024) });
    const [direct, byNode] = [await server.begin("HEAD", "a"), await server.begin("GET", "a")];
    assert.equal((await direct.answer({ toHead: true })).headers["connection"], "keep-alive");
    assert.equal((await byNode.answer()).headers["connection"], "keep-alive");
    const closed = server.server.close();
    for (const connection of [direct, byNode]) {
      connection.write(requestBytes("POST", "a", { headers: OCTETS, body: "x" }));
      const { status, headers } = await connection.answer();
      assert.deepEqual([status, headers["connection"]], [204, "close"]);
    }
    await closed;
  });

  test("waits half a second for the next request of a connection", async (context) => {
    const server = await startServer(context);
    const connection = await server.begin("GET", "/health");
    await connection.answer();
    server.clock.advance(REQUEST_LIMITS.nextRequestTimeout - 1);
    const closed = server.server.close();
    await server.clock.armed(REQUEST_LIMITS.nextRequestTimeout);
    server.clock.advance(REQUEST_LIMITS.nextRequestTimeout);
    assert.equal(await connection.rest(), "");
    await closed;
  });

  test("answers what an idle connection has sent, read or not", async (context) => {
    const server = await startServer(context);
    await server.send("PUT", "a");
    const connection = await server.begin("HEAD", "a");
    await connection.answer({ toHead: true });
    server.clock.advance(REQUEST_LIMITS.nextRequestTimeout);
    // The system has the bytes at once, and the server has not read them.
    connection.write(requestBytes("POST", "a", { headers: OCTETS, body: "x" }));
    const closed = server.server.close();
    const { status, headers } = await connection.answer();
    assert.deepEqual([status, headers["connection"]], [204, "close"]);
    await closed;
  });

  test("does not keep a connection for the next request after a long answer", async (context) => {
    const server = await startServer(context);
    const body = Buffer.alloc(8 * 1024 * 1024);
    await server.send("PUT", "a", { body });
    await server.stop();
    const again = await startServer(context, { dir: server.dir, chunkBytes: body.length });
    const connection = await again.connect();
    connection.socket.pause();
    connection.write(requestBytes("GET", "a"));
    while (connection.socket.bytesRead === 0) await again.send("HEAD", "a");
    const closed = again.server.close();
    connection.socket.resume();
    assert.equal((await connection.answer()).body.length, body.length);
    connection.socket.end();
    await closed;
  });
});
