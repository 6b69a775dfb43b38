import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { receiveBody } from "../../src/http/context/body.js";
import type { Context } from "../../src/http/context/context.js";
import { problem } from "../../src/http/encoding/problems.js";
import { Exchange } from "../../src/http/exchange/exchange.js";
import { readHeaders } from "../../src/http/request/request-headers.js";
import type { Body } from "../../src/stream/rules/command.js";
import { AcceptedSockets } from "../helpers/accepted-sockets.js";
import { httpParts, type HttpParts, type HttpPartsOptions } from "../helpers/http-parts.js";
import { RawConnection } from "../helpers/raw-connection.js";
import { requestBytes, startServer } from "../helpers/test-server.js";
import { placeOf } from "../helpers/tokens.js";
import { until } from "../helpers/until.js";

const BYTES = { "Content-Type": "application/octet-stream" };
const MIB = 1024 * 1024;

function codeOf({ text }: { text: string }): unknown {
  return JSON.parse(text).code;
}

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
      const bodyContext = {
        inFlight,
        bodyMemory,
        responder,
        log,
        settings: { maxAppendBytes: options.maxBodyBytes },
      } as unknown as Context;
      const use = (body: Body): void => {
        this.taken.push(Buffer.isBuffer(body) ? body.length : 0);
        responder.send(exchange, 204, [], null);
      };
      const head = { contentType: null };
      void receiveBody({
        context: bodyContext,
        exchange,
        name: "a",
        head,
        isJson: false,
        maxBytes: options.maxBodyBytes ?? Infinity,
        tooLong: problem("body-too-large"),
        refusal: () => null,
        lateRefusal: () => null,
        use,
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
  holds(bytes: number): Promise<void> {
    return until(() => this.parts.bodyMemory.bytes === bytes);
  }
}

const KIB = 1024;

describe("memory for request bodies, over HTTP", () => {
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
    await until(() => server.taken.length >= 4);
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

test("sixteen request bodies that do not end leave others alone", async (context) => {
  const server = await startServer(context);
  const accepted = new AcceptedSockets(context);
  await server.send("PUT", "a", { headers: BYTES });
  const parts = { headers: { ...BYTES, "Content-Length": String(16 * MIB) }, body: Buffer.alloc(16 * MIB - 1) };
  const begin = (): Promise<RawConnection> => server.begin("POST", "a", parts);
  // There is room for sixteen; the others are refused.
  const unfinished = await Promise.all(Array.from({ length: 20 }, begin));
  const statuses = new Map<RawConnection, number>();
  for (const connection of unfinished) {
    connection.answer().then(
      ({ status }) => statuses.set(connection, status),
      () => undefined,
    );
  }
  await until(() => statuses.size >= 4);
  const sentBytes = requestBytes("POST", "a", parts).length;
  const isRead = ({ socket }: RawConnection): boolean => accepted.otherEndOf(socket).bytesRead === sentBytes;
  await until(() => unfinished.every((connection) => statuses.has(connection) || isRead(connection)));
  assert.deepEqual([...statuses.values()], [503, 503, 503, 503]);
  assert.equal((await server.send("POST", "a", { headers: BYTES, body: Buffer.alloc(100) })).status, 204);
  assert.equal((await server.send("POST", "a", { headers: BYTES, body: Buffer.alloc(MIB), from: "127.0.0.2" })).status, 204);
  await until(() => statuses.size >= 5);
  assert.equal([...statuses.values()][4], 503);
  const tail = (await server.send("HEAD", "a")).headers["stream-next-offset"];
  assert.equal(placeOf(tail), `0_${MIB + 100}`);
});
