import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { receiveBody } from "../../src/http/body.js";
import type { Context } from "../../src/http/context.js";
import { Exchange } from "../../src/http/exchange.js";
import { readHeaders } from "../../src/http/request-headers.js";
import type { ServerOptions } from "../../src/server.js";
import { httpParts, type HttpParts, type HttpPartsOptions } from "../helpers/http-parts.js";
import { RawConnection } from "../helpers/raw-connection.js";
import { requestBytes, startServer, type TestServer } from "../helpers/test-server.js";

const BYTES = { "Content-Type": "application/octet-stream" };
const MIB = 1024 * 1024;
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

/** An HTTP server that reads bodies into small rooms. */
class BodyServer {
  readonly parts: HttpParts;
  readonly taken: number[] = [];
  readonly #server: Server;
  readonly #connections: RawConnection[] = [];

  private constructor(options: HttpPartsOptions) {
    this.parts = httpParts(options);
    const { inFlight, bodyMemory, responder, log } = this.parts;
    this.#server = createHttpServer((req, res) => {
      const exchange = new Exchange(req, res, { path: "/", query: "" }, readHeaders(req.rawHeaders), false);
      inFlight.begin(exchange);
      // All that a body asks of a context.
      const bodyContext = { inFlight, bodyMemory, responder, log, settings: { maxAppendBytes: options.maxBodyBytes } } as unknown as Context;
      void receiveBody(bodyContext, exchange, (body) => {
        this.taken.push(body.length);
        responder.send(exchange, 204, [], null);
      });
    });
  }

  static async start(context: TestContext, options: HttpPartsOptions): Promise<BodyServer> {
    const server = new BodyServer(options);
    await once(server.#server.listen(0, "127.0.0.1"), "listening");
    context.after(async () => {
      await Promise.all(server.#connections.map((connection) => connection.close()));
      server.#server.close();
    });
    return server;
  }

  /** Begins a request from the address `from`, with `sent` bytes of its body; `length` is what it promises, `null` for chunks. */
  async begin(length: number | null, sent: number, from?: string): Promise<RawConnection> {
    const connection = await RawConnection.open((this.#server.address() as AddressInfo).port, from); // it listens on a port
    this.#connections.push(connection);
    const framing = length === null ? "Transfer-Encoding: chunked" : `Content-Length: ${length}`;
    connection.write(`POST / HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n`);
    this.send(connection, length, sent);
    return connection;
  }

  send(connection: RawConnection, length: number | null, sent: number): void {
    const bytes = "x".repeat(sent);
    connection.write(length === null ? `${sent.toString(16)}\r\n${bytes}\r\n` : bytes);
  }

  /** Resolves when the bodies in memory are so many bytes. */
  async holds(bytes: number): Promise<void> {
    while (this.parts.bodyMemory.bytes !== bytes) await new Promise((resolve) => setImmediate(resolve));
  }
}

const KIB = 1024;

describe("memory for bodies", () => {
  for (const length of [null, 600 * KIB]) {
    test(`that is full is 503, for one ${length === null ? "in chunks" : "with a promised length"}`, async (context) => {
      const server = await BodyServer.start(context, { maxLargeBytes: 1000 * KIB, maxBodyBytes: 1000 * KIB });
      const first = await server.begin(length, 599 * KIB);
      await server.holds(599 * KIB);
      const { status, headers, text } = await (await server.begin(length, 600 * KIB)).answer();
      assert.deepEqual([status, headers["retry-after"], headers["connection"], codeOf({ text })], [503, "1", "close", "overloaded"]);
      server.send(first, length, KIB);
      if (length === null) first.write("0\r\n\r\n");
      assert.equal((await first.answer()).status, 204);
      assert.deepEqual([server.taken, server.parts.bodyMemory.bytes], [[600 * KIB], 0]);
    });
  }

  test("that large ones fill has room for small ones, told or in chunks", async (context) => {
    const server = await BodyServer.start(context, { maxLargeBytes: 1000 * KIB, maxBodyBytes: 1000 * KIB });
    await server.begin(1000 * KIB, 1000 * KIB - 1);
    await server.holds(1000 * KIB - 1);
    for (const length of [64 * KIB, null]) {
      const small = await server.begin(length, 64 * KIB);
      if (length === null) small.write("0\r\n\r\n");
      assert.equal((await small.answer()).status, 204);
    }
    assert.equal((await (await server.begin(64 * KIB + 1, 2)).answer()).status, 503);
    const grown = await server.begin(null, 64 * KIB);
    await server.holds(1064 * KIB - 1);
    server.send(grown, null, 1);
    assert.equal((await grown.answer()).status, 503);
    await server.holds(1000 * KIB - 1);
  });

  test("that small ones fill has room for large ones", async (context) => {
    const server = await BodyServer.start(context, { maxSmallBytes: 100 * KIB, maxBodyBytes: 1000 * KIB });
    await server.begin(60 * KIB, 59 * KIB);
    await server.begin(null, 40 * KIB);
    await server.holds(99 * KIB);
    assert.equal((await (await server.begin(2 * KIB, 2 * KIB)).answer()).status, 503);
    assert.equal((await (await server.begin(100 * KIB, 100 * KIB)).answer()).status, 204);
  });

  test("is had back from a body that stands still, which is 408", async (context) => {
    const server = await BodyServer.start(context, { maxLargeBytes: 1000 * KIB, maxBodyBytes: 500 * KIB });
    const still = await server.begin(500 * KIB, 499 * KIB);
    await server.holds(499 * KIB);
    server.parts.clock.advance(5_000);
    const moving = await server.begin(null, 499 * KIB);
    await server.holds(998 * KIB);
    server.parts.clock.advance(5_000);
    assert.equal((await (await server.begin(100 * KIB, 100 * KIB)).answer()).status, 204);
    const { status, headers, text } = await still.answer();
    assert.deepEqual([status, headers["connection"], codeOf({ text })], [408, "close", "request-timeout"]);
    assert.match(JSON.parse(text).detail, /1 KiB a second/);
    moving.write("0\r\n\r\n");
    assert.equal((await moving.answer()).status, 204);
    assert.deepEqual([server.taken, server.parts.bodyMemory.bytes], [[100 * KIB, 499 * KIB], 0]);
  });

  test("is not asked back of a body that stands still where there is enough of it", async (context) => {
    const server = await BodyServer.start(context, { maxLargeBytes: 1000 * KIB, maxBodyBytes: 500 * KIB });
    const still = await server.begin(500 * KIB, 499 * KIB);
    await server.holds(499 * KIB);
    server.parts.clock.advance(100_000);
    assert.equal((await (await server.begin(500 * KIB, 500 * KIB)).answer()).status, 204);
    server.send(still, 500 * KIB, KIB);
    assert.equal((await still.answer()).status, 204);
  });

  test("is shared by addresses, not by who comes first", async (context) => {
    const server = await BodyServer.start(context, { maxLargeBytes: 1000 * KIB, maxBodyBytes: 250 * KIB });
    const greedy = await Promise.all(Array.from({ length: 4 }, () => server.begin(250 * KIB, 250 * KIB - 1)));
    await server.holds(1000 * KIB - 4);
    assert.equal((await (await server.begin(100 * KIB, 100 * KIB)).answer()).status, 503);
    const other = await server.begin(250 * KIB, 250 * KIB, "127.0.0.2");
    assert.equal((await other.answer()).status, 204);
    const ended = await Promise.race(greedy.map((connection) => connection.answer()));
    assert.deepEqual([ended.status, codeOf(ended)], [503, "overloaded"]);
    await server.holds(750 * KIB - 3);
    for (const connection of greedy) server.send(connection, 250 * KIB, 1);
    while (server.taken.length < 4) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(server.parts.bodyMemory.bytes, 0);
  });

  test("is free again after any of its ends", async (context) => {
    const server = await BodyServer.start(context, { maxBodyBytes: 500 * KIB });
    const [left, chunks] = [await server.begin(100, 99), await server.begin(null, 100 * KIB)];
    await server.holds(100 * KIB + 99);
    await left.close();
    await server.holds(100 * KIB);
    server.send(chunks, null, 500 * KIB);
    assert.equal((await chunks.answer()).status, 413);
    await server.holds(0);
  });
});

test("sixteen bodies that do not end leave others alone", async (context) => {
  const server = await withStream(context);
  const body = Buffer.alloc(16 * MIB - 1);
  const begin = (): Promise<RawConnection> => server.begin("POST", "a", { headers: { ...BYTES, "Content-Length": String(16 * MIB) }, body });
  // There is room for sixteen; the others are refused.
  const unfinished = await Promise.all(Array.from({ length: 20 }, begin));
  const statuses: number[] = [];
  for (const connection of unfinished) {
    connection.answer().then(({ status }) => statuses.push(status), () => undefined);
  }
  const areSent = (): boolean => unfinished.every(({ socket }) => socket.writableLength === 0);
  while (statuses.length < 4 || !areSent()) await server.send("HEAD", "a");
  // What the system has taken the server reads in these turns.
  for (let round = 0; round < 100; round += 1) await server.send("HEAD", "a");
  assert.deepEqual(statuses, [503, 503, 503, 503]);
  assert.equal((await server.send("POST", "a", { headers: BYTES, body: Buffer.alloc(100) })).status, 204);
  assert.equal((await server.send("POST", "a", { headers: BYTES, body: Buffer.alloc(MIB), from: "127.0.0.2" })).status, 204);
  while (statuses.length < 5) await server.send("HEAD", "a");
  assert.equal(statuses[4], 503);
  const tail = (await server.send("HEAD", "a")).headers["stream-next-offset"];
  assert.equal(Number(tail?.slice(17)), MIB + 100);
});
