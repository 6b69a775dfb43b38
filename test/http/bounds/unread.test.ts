import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { Exchange } from "../../../src/http/exchange/exchange.js";
import { OwnResponse } from "../../../src/http/node/own-response.js";
import { unsentBytesOf } from "../../../src/http/node/write-queue.js";
import { readHeaders } from "../../../src/http/request/request-headers.js";
import { splitTarget } from "../../../src/http/request/target.js";
import type { ServerOptions } from "../../../src/server.js";
import { AcceptedSockets } from "../../helpers/accepted-sockets.js";
import { httpParts, type HttpParts } from "../../helpers/http-parts.js";
import { requestBytes, startServer, type TestServer } from "../../helpers/test-server.js";
import { until } from "../../helpers/until.js";

const MIB = 1024 * 1024;
/** More than the system takes from the server while nobody reads. */
const CHUNK_BYTES = 16 * MIB;
const BYTES = { "Content-Type": "application/octet-stream" };

/** A server with a stream of one chunk. */
async function withStream(context: TestContext, options: Partial<ServerOptions> = {}): Promise<TestServer> {
  const server = await startServer(context, { chunkBytes: CHUNK_BYTES, longPollTimeoutMs: 3_600_000, ...options });
  await server.send("PUT", "s", { headers: BYTES, body: Buffer.alloc(CHUNK_BYTES) });
  return server;
}

/** A client that reads when it is told to, and only counts what comes. */
class Reader {
  readonly #socket: Socket;
  readonly #accepted: AcceptedSockets;
  #bytes = 0;

  private constructor(socket: Socket, accepted: AcceptedSockets) {
    this.#socket = socket;
    this.#accepted = accepted;
    socket.on("data", (chunk: Buffer) => (this.#bytes += chunk.length));
    // A reset is how a server cuts what it still has to send.
    socket.on("error", () => undefined);
  }

  /** What the server has written for the client, and the system has not taken. */
  get #unsentBytes(): number {
    return unsentBytesOf(this.#accepted.otherEndOf(this.#socket));
  }

  /** Sends requests, and reads no further than the first bytes of an answer, of which the system does not take all. */
  static async stalled(context: TestContext, port: number, targets: readonly string[], from = "127.0.0.1"): Promise<Reader> {
    const accepted = new AcceptedSockets(context);
    const socket = connect({ port, host: "127.0.0.1", localAddress: from });
    context.after(() => void socket.destroy());
    const reader = new Reader(socket, accepted);
    socket.write(Buffer.concat(targets.map((target) => requestBytes("GET", target))));
    await once(socket, "data");
    socket.pause();
    await until(() => reader.#unsentBytes > 0);
    return reader;
  }

  /** Resolves when the server has written so many bytes in all for it, taken or not. */
  hasBeenWritten(bytes: number): Promise<void> {
    return until(() => this.#accepted.otherEndOf(this.#socket).bytesWritten >= bytes);
  }

  /** Takes so many bytes more, at least, and stops reading; resolves when the server has seen that some were taken. */
  async take(bytes: number): Promise<void> {
    const unsentBefore = this.#unsentBytes;
    const wanted = this.#bytes + bytes;
    assert.ok(await this.getsAll(wanted), "the connection was cut");
    await until(() => this.#unsentBytes < unsentBefore);
  }

  /** Reads all that comes until at least `bytes` have come in all; false when the connection ends before. */
  async getsAll(bytes: number): Promise<boolean> {
    const isOver = new Promise<false>((resolve) => this.#socket.once("close", () => resolve(false)));
    this.#socket.resume();
    while (this.#bytes < bytes) {
      const goesOn = new Promise<true>((resolve) => this.#socket.once("data", () => resolve(true)));
      if (!(await Promise.race([goesOn, isOver]))) return false;
    }
    this.#socket.pause();
    return true;
  }
}

/** What one read of a stream is answered, by a client that reads it. */
async function statusOf(port: number, target: string, from = "127.0.0.1"): Promise<number> {
  const socket = connect({ port, host: "127.0.0.1", localAddress: from });
  socket.write(requestBytes("GET", target, { headers: { Connection: "close" } }));
  const [first] = (await once(socket, "data")) as [Buffer]; // the event's argument
  socket.resume();
  await once(socket, "end");
  return Number(first.toString("latin1", 9, 12));
}

describe("a reader that does not take its answer", () => {
  for (const [stallMs, getsAll] of [
    [59_000, true],
    [61_000, false],
  ] as const) {
    test(`that takes nothing of its answer for ${stallMs} ms is ${getsAll ? "waited for" : "cut"}`, async (context) => {
      const server = await withStream(context);
      const reader = await Reader.stalled(context, server.port, ["s"]);
      server.clock.advance(stallMs);
      assert.equal(await reader.getsAll(CHUNK_BYTES), getsAll);
    });
  }

  test("that takes some of it now and then is waited for", async (context) => {
    const server = await withStream(context);
    const reader = await Reader.stalled(context, server.port, ["s"]);
    for (let round = 0; round < 3; round += 1) {
      server.clock.advance(40_000);
      await reader.take(3 * MIB);
    }
    assert.equal(await reader.getsAll(CHUNK_BYTES), true);
  });

  test("of events that takes none is cut as well, however long its connection may last", async (context) => {
    const server = await withStream(context, { sseLifetimeMs: 3_600_000 });
    const reader = await Reader.stalled(context, server.port, ["s?live=sse&offset=-1"]);
    server.clock.advance(61_000);
    assert.equal(await reader.getsAll(CHUNK_BYTES), false);
  });

  test("that waits behind slow answers on one connection waits as long as any", async (context) => {
    const server = await withStream(context);
    const reader = await Reader.stalled(context, server.port, [...new Array<string>(8).fill("s"), "s?live=long-poll&offset=now"]);
    for (let round = 0; round < 8; round += 1) {
      await reader.hasBeenWritten((round + 1) * CHUNK_BYTES);
      server.clock.advance(20_000);
      assert.equal(await reader.getsAll((round + 1) * CHUNK_BYTES), true);
    }
    const pollMs = 3_600_000;
    await server.clock.armed(pollMs);
    server.clock.advance(pollMs);
    assert.equal(await reader.getsAll(8 * CHUNK_BYTES + 9 * 200), true);
  });
});

/** A server of ours with room for four large answers, which answers `/0`, `/1` and so on with memory of its own. */
async function withFourRooms(context: TestContext): Promise<{ readonly port: number; readonly parts: HttpParts }> {
  const parts = httpParts({ maxLargeBytes: 4 * CHUNK_BYTES, chunkBytes: CHUNK_BYTES });
  const bodies = Array.from({ length: 5 }, () => Buffer.alloc(CHUNK_BYTES));
  const server = createServer({ ServerResponse: OwnResponse }, (req, res) => {
    const exchange = new Exchange(req, res, splitTarget(req.url ?? ""), readHeaders(req.rawHeaders), false);
    parts.inFlight.begin(exchange);
    parts.responder.send(exchange, 200, [], bodies[Number(exchange.target.path.slice(1))] ?? Buffer.alloc(64 * 1024));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  context.after(() => void server.close());
  return { port: (server.address() as AddressInfo).port, parts }; // it listens on a port
}

describe("what a client takes of one long write", () => {
  const handles: readonly (readonly [what: string, handleOf: (queue: { writeQueueSize: number }) => object])[] = [
    ["is seen", (queue) => queue],
    ["is seen under TLS, where only the connection below knows", (queue) => ({ writeQueueSize: MIB, _parent: queue })],
  ];
  for (const [what, handleOf] of handles) {
    test(what, () => {
      const { unread, clock } = httpParts();
      const queue = { writeQueueSize: MIB };
      let isCut = false;
      // All that is asked of one.
      const socket = { writableLength: MIB, _handle: handleOf(queue), destroy: () => (isCut = true) } as unknown as Socket;
      unread.add({ req: { socket }, client: "192.0.2.1" }, MIB);
      for (let round = 0; round < 10; round += 1) {
        clock.advance(50_000);
        queue.writeQueueSize -= 1;
      }
      assert.equal(isCut, false);
      clock.advance(61_000);
      assert.deepEqual([isCut, unread.bytes], [true, 0]);
    });
  }
});

describe("memory for answers that are not taken", () => {
  /** Readers of one address that have all the room there is. */
  async function fill(
    context: TestContext,
  ): Promise<{ readonly port: number; readonly parts: HttpParts; readonly readers: readonly Reader[] }> {
    const { port, parts } = await withFourRooms(context);
    const readers = await Promise.all([0, 1, 2, 3].map((at) => Reader.stalled(context, port, [`/${at}`])));
    assert.equal(parts.unread.bytes, 4 * CHUNK_BYTES);
    return { port, parts, readers };
  }

  /** How many of the readers are cut off. */
  async function cutCount(readers: readonly Reader[]): Promise<number> {
    const complete = await Promise.all(readers.map((reader) => reader.getsAll(CHUNK_BYTES)));
    return complete.filter((isComplete) => !isComplete).length;
  }

  test("holds bytes that many readers share once", async (context) => {
    const { port, parts } = await withFourRooms(context);
    const readers = await Promise.all(Array.from({ length: 10 }, () => Reader.stalled(context, port, ["/0"])));
    assert.equal(parts.unread.bytes, CHUNK_BYTES);
    assert.equal(await statusOf(port, "/1"), 200);
    assert.equal(await cutCount(readers), 0);
  });

  test("that is full is 503 for large answers to who holds it, and goes on for small ones", async (context) => {
    const { port, readers } = await fill(context);
    assert.equal(await statusOf(port, "/4"), 503);
    assert.equal(await statusOf(port, "/small"), 200);
    // What is in memory already takes no more.
    assert.equal(await statusOf(port, "/3"), 200);
    assert.equal(await cutCount(readers), 0);
  });

  test("that one address fills is another's as well", async (context) => {
    const { port, readers } = await fill(context);
    assert.equal(await statusOf(port, "/4", "127.0.0.2"), 200);
    assert.equal(await cutCount(readers), 1);
  });

  test("is had back from readers that take nothing as soon as others need it", async (context) => {
    const { port, parts, readers } = await fill(context);
    parts.clock.advance(9_000);
    assert.equal(await statusOf(port, "/4"), 503);
    parts.clock.advance(2_000);
    assert.equal(await statusOf(port, "/4"), 200);
    assert.equal(await cutCount(readers), 1);
  });

  test("is free once all is taken, and nobody is looked at any more", async (context) => {
    const { parts, readers } = await fill(context);
    assert.equal(parts.clock.pendingCount, 1);
    assert.equal(await cutCount(readers), 0);
    await until(() => parts.unread.bytes === 0);
    assert.equal(parts.clock.pendingCount, 0);
  });
});
