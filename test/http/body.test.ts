import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { receiveBody } from "../../src/http/body.js";
import type { Context } from "../../src/http/context.js";
import { CorsPolicy } from "../../src/http/cors.js";
import { Exchange } from "../../src/http/exchange.js";
import { InFlight } from "../../src/http/in-flight.js";
import { readHeaders } from "../../src/http/request-headers.js";
import { Responder } from "../../src/http/respond.js";
import type { ServerOptions } from "../../src/server.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { RawConnection } from "../helpers/raw-connection.js";
import { requestBytes, startServer, type TestServer } from "../helpers/test-server.js";

const BYTES = { "Content-Type": "application/octet-stream" };
const CHUNKED = { ...BYTES, "Transfer-Encoding": "chunked" };

async function withStream(context: TestContext, options: Partial<ServerOptions> = {}): Promise<TestServer> {
  const server = await startServer(context, options);
  await server.send("PUT", "a");
  return server;
}

function codeOf(answer: { readonly text: string }): string {
  return JSON.parse(answer.text).code;
}

async function contentOf(server: TestServer): Promise<string> {
  return (await server.send("GET", "a")).text;
}

describe("a body", () => {
  test("of the greatest size is taken, told or in chunks", async (context) => {
    const server = await withStream(context, { maxAppendBytes: 10 });
    assert.equal((await server.send("POST", "a", { headers: BYTES, body: "0123456789" })).status, 204);
    const connection = await server.begin("POST", "a", { headers: CHUNKED });
    connection.write("5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n");
    assert.equal((await connection.answer()).status, 204);
  });

  test("in many pieces comes together", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("POST", "a", { headers: { ...BYTES, "Content-Length": "300" } });
    for (let piece = 0; piece < 30; piece += 1) {
      connection.write(`${piece % 10}`.repeat(10));
      await server.send("HEAD", "a");
    }
    assert.equal((await connection.answer()).status, 204);
    assert.equal((await contentOf(server)).length, 300);
  });

  test("with trailers is taken without them", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("POST", "a", { headers: CHUNKED });
    connection.write("5\r\nhello\r\n0\r\nStream-Closed: true\r\n\r\n");
    assert.equal((await connection.answer()).headers["stream-closed"], undefined);
    assert.equal(await contentOf(server), "hello");
  });

  test("of chunks that are all empty is empty", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("POST", "a", { headers: CHUNKED });
    connection.write("0\r\n\r\n");
    assert.equal(codeOf(await connection.answer()), "empty-body");
  });

  test("of a request that takes none is passed over", async (context) => {
    const server = await withStream(context);
    const connection = await server.connect();
    connection.write(Buffer.concat([requestBytes("GET", "a", { body: "ignored" }), requestBytes("DELETE", "a", { body: "ignored" })]));
    assert.equal((await connection.answer()).status, 200);
    assert.equal((await connection.answer()).status, 204);
  });
});

describe("a body that is too large", () => {
  test("is refused by its promised length, before it is read", async (context) => {
    const server = await withStream(context, { maxAppendBytes: 10 });
    const connection = await server.begin("POST", "a", { headers: { ...BYTES, "Content-Length": "11" } });
    const answer = await connection.answer();
    assert.deepEqual([answer.status, codeOf(answer)], [413, "body-too-large"]);
    assert.equal(answer.headers["connection"], "close");
    assert.match(JSON.parse(answer.text).detail, /10 bytes/);
  });

  test("is refused at the chunk that is too much", async (context) => {
    const server = await withStream(context, { maxAppendBytes: 10 });
    for (const method of ["POST", "PUT"]) {
      const connection = await server.begin(method, method === "PUT" ? "b" : "a", { headers: CHUNKED });
      connection.write("a\r\n0123456789\r\n1\r\nx\r\n");
      assert.equal((await connection.answer()).status, 413);
    }
    assert.equal(await contentOf(server), "");
    assert.equal((await server.send("HEAD", "b")).status, 404);
  });

  test("ends at last though its chunks never do", async (context) => {
    const server = await withStream(context, { maxAppendBytes: 1000 });
    const connection = await server.begin("POST", "a", { headers: CHUNKED });
    const chunk = `400\r\n${"x".repeat(1024)}\r\n`;
    connection.write(chunk);
    assert.equal((await connection.answer()).status, 413);
    server.clock.advance(30_000);
    while (!connection.socket.destroyed) {
      connection.write(chunk);
      await server.send("HEAD", "a");
    }
    assert.equal(await contentOf(server), "");
  });
});

describe("an upload that its client gives up", () => {
  for (const [title, headers, part] of [["with a promised length", { ...BYTES, "Content-Length": "100" }, "hello"], ["in chunks", CHUNKED, "5\r\nhello\r\n"]] as const) {
    test(`${title} leaves nothing behind`, async (context) => {
      const server = await withStream(context);
      const connection = await server.begin("POST", "a", { headers });
      connection.write(part);
      await server.send("HEAD", "a");
      await connection.close();
      assert.equal(await contentOf(server), "");
      // Nothing is in flight, or a stop would wait for it until its time is over, which never comes here.
      await server.stop();
    });
  }
});

describe("Expect: 100-continue", () => {
  test("is told to go on when the body will be read", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("POST", "a", { headers: { ...BYTES, "Content-Length": "5", Expect: "100-continue" } });
    assert.equal((await connection.answer()).status, 100);
    connection.write("hello");
    assert.equal((await connection.answer()).status, 204);
  });

  const refused: readonly (readonly [title: string, target: string, headers: Record<string, string>, status: number])[] = [
    ["a body that is too large", "a", { ...BYTES, "Content-Length": "1000000000" }, 413],
    ["an invalid name", "a//b", { ...BYTES, "Content-Length": "5" }, 400],
    ["half a producer", "a", { ...BYTES, "Content-Length": "5", "Producer-Id": "p" }, 400],
  ];
  for (const [title, target, headers, status] of refused) {
    test(`is refused without a 100 for ${title}`, async (context) => {
      const server = await withStream(context);
      const connection = await server.begin("POST", target, { headers: { ...headers, Expect: "100-Continue" } });
      const answer = await connection.answer();
      assert.deepEqual([answer.status, answer.headers["connection"]], [status, "close"]);
      assert.equal(await connection.rest(), "");
      await connection.close();
    });
  }

  test("of a request without a body needs no 100", async (context) => {
    const server = await withStream(context);
    const connection = await server.begin("GET", "a", { headers: { Expect: "100-continue" } });
    assert.equal((await connection.answer()).status, 200);
  });

  test("something else is 417", async (context) => {
    const server = await withStream(context);
    const answer = await server.send("POST", "a", { headers: { ...BYTES, Expect: "miracles" }, body: "x" });
    assert.deepEqual([answer.status, codeOf(answer)], [417, "expectation-failed"]);
    assert.equal(await contentOf(server), "");
  });
});

test("bodies that take too much memory together are refused with 503", async (context) => {
  const inFlight = new InFlight(8);
  const responder = new Responder({ cors: new CorsPolicy("*"), inFlight, clock: new ManualClock() });
  const taken: string[] = [];
  const server = createHttpServer((req, res) => {
    const exchange = new Exchange(req, res, { path: "/", query: "" }, readHeaders(req.rawHeaders), false);
    inFlight.begin(exchange);
    // All that a body asks of a context.
    const bodyContext = { inFlight, responder, settings: { maxAppendBytes: 100 } } as unknown as Context;
    void receiveBody(bodyContext, exchange, (body) => {
      taken.push(body.toString());
      responder.send(exchange, 204, [], null);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const open = (): Promise<RawConnection> => RawConnection.open((server.address() as AddressInfo).port);
  const [first, second] = [await open(), await open()];
  context.after(async () => {
    await Promise.all([first.close(), second.close()]);
    server.close();
  });
  const begun = once(server, "request");
  first.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nhello");
  await begun;
  second.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  const { status, headers, text } = await second.answer();
  assert.deepEqual([status, headers["retry-after"], codeOf({ text })], [503, "1", "overloaded"]);
  first.write("!");
  assert.equal((await first.answer()).status, 204);
  assert.deepEqual([taken, inFlight.bodyBytes], [["hello!"], 0]);
});
