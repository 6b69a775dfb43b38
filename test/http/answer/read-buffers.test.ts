import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import type { Exchange } from "../../../src/http/exchange/exchange.js";
import { OwnResponse } from "../../../src/http/node/own-response.js";
import { ReadBuffers } from "../../../src/http/answer/read-buffers.js";
import { bareExchange } from "../../helpers/bare-exchange.js";
import { directExchange } from "../../helpers/direct-exchange.js";
import { ManualClock } from "../../helpers/manual-clock.js";
import { nodeAnswer } from "../../helpers/node-answer.js";
import { requestBytes, startServer } from "../../helpers/test-server.js";

const MIB = 1024 * 1024;

/** A request to a server of ours, of which nothing but the end of its answer is asked. */
function answer(): Exchange {
  return bareExchange({ kind: OwnResponse });
}

/** What a read gets that is answered by a server of ours. */
function allocated(buffers: ReadBuffers, bytes: number): Buffer {
  const allocate = buffers.allocatorFor(answer());
  assert.ok(allocate !== undefined);
  return allocate(bytes);
}

describe("memory for reads", () => {
  test("is used again once its answer is over, and not before", () => {
    const buffers = new ReadBuffers(MIB, new ManualClock());
    const first = allocated(buffers, MIB);
    const exchange = answer();
    buffers.takeBackAfter(exchange, first);
    const second = allocated(buffers, MIB);
    assert.notEqual(second.buffer, first.buffer);
    nodeAnswer(exchange).emit("close");
    const third = allocated(buffers, MIB - 1);
    assert.equal(third.buffer, first.buffer);
    assert.equal(third.length, MIB - 1);
    assert.notEqual(allocated(buffers, MIB).buffer, first.buffer);
  });

  test("comes back also where less of it was used", () => {
    const buffers = new ReadBuffers(MIB, new ManualClock());
    const first = allocated(buffers, MIB);
    const exchange = answer();
    buffers.takeBackAfter(exchange, first.subarray(0, MIB - 100));
    nodeAnswer(exchange).emit("close");
    assert.equal(allocated(buffers, MIB).buffer, first.buffer);
  });

  test("comes back at once where the answer has none of it: a 304, a refusal, a client that is gone", async (context) => {
    const { client, exchange } = await directExchange(context);
    const buffers = new ReadBuffers(MIB, new ManualClock());
    const first = allocated(buffers, MIB);
    exchange.direct?.answer(exchange, "HTTP/1.1 304 Not Modified\r\n\r\n");
    buffers.takeBackAfter(exchange, first);
    assert.equal(allocated(buffers, MIB).buffer, first.buffer);
    assert.equal((await client.answer()).status, 304);
  });

  test("comes back once", () => {
    const buffers = new ReadBuffers(MIB, new ManualClock());
    const memory = allocated(buffers, MIB);
    const answers = [answer(), answer()];
    for (const exchange of answers) buffers.takeBackAfter(exchange, memory);
    for (const exchange of answers) nodeAnswer(exchange).emit("close");
    assert.notEqual(allocated(buffers, MIB).buffer, allocated(buffers, MIB).buffer);
  });

  test("that was not lent here is left alone", () => {
    const buffers = new ReadBuffers(MIB, new ManualClock());
    const foreign = Buffer.allocUnsafeSlow(MIB);
    const exchange = answer();
    buffers.takeBackAfter(exchange, foreign);
    assert.equal(nodeAnswer(exchange).listenerCount("close"), 0);
    assert.notEqual(allocated(buffers, MIB).buffer, foreign.buffer);
  });

  for (const bytes of [0, 1, MIB / 2, MIB + 1]) {
    test(`for ${bytes} bytes is just as large`, () => {
      const memory = allocated(new ReadBuffers(MIB, new ManualClock()), bytes);
      assert.deepEqual([memory.length, memory.buffer.byteLength], [bytes, bytes]);
    });
  }

  test("for small chunks is nobody else's: they may be copied into their answers", () => {
    for (const [bufferBytes, isLent] of [
      [64 * 1024, false],
      [64 * 1024 + 1, true],
    ] as const) {
      const buffers = new ReadBuffers(bufferBytes, new ManualClock());
      const exchange = answer();
      buffers.takeBackAfter(exchange, allocated(buffers, bufferBytes));
      assert.equal(nodeAnswer(exchange).listenerCount("close"), isLent ? 1 : 0);
    }
  });

  for (const { bufferBytes, kept } of [
    { bufferBytes: MIB, kept: 16 },
    { bufferBytes: 6 * MIB, kept: 2 },
    { bufferBytes: 17 * MIB, kept: 0 },
  ]) {
    test(`of which ${kept} buffers of ${bufferBytes / MIB} MiB wait at the most`, () => {
      const buffers = new ReadBuffers(bufferBytes, new ManualClock());
      const lent = Array.from({ length: 20 }, () => allocated(buffers, bufferBytes));
      for (const memory of lent) {
        const exchange = answer();
        buffers.takeBackAfter(exchange, memory);
        nodeAnswer(exchange).emit("close");
      }
      const known = new Set(lent.map(({ buffer }) => buffer));
      const again = Array.from({ length: 20 }, () => allocated(buffers, bufferBytes));
      assert.equal(again.filter(({ buffer }) => known.has(buffer)).length, kept);
    });
  }

  test("is not shared where somebody else may keep what is sent", () => {
    assert.equal(new ReadBuffers(MIB, new ManualClock()).allocatorFor(bareExchange()), undefined);
  });

  test("is let go of when nobody asks for it", async () => {
    const clock = new ManualClock();
    const buffers = new ReadBuffers(MIB, clock);
    const memory = allocated(buffers, MIB);
    const exchange = answer();
    buffers.takeBackAfter(exchange, memory);
    nodeAnswer(exchange).emit("close");
    clock.advance(10_000);
    assert.notEqual(allocated(buffers, MIB).buffer, memory.buffer);
  });
});

describe("chunks that share memory one after another", () => {
  // More than the system takes from the server while nobody reads.
  const CHUNK_BYTES = 16 * MIB;

  /** What is left to read of a chunk, which is `byte` from its first to its last byte. */
  async function readRest(reader: ReadableStreamDefaultReader<Uint8Array>, byte: number): Promise<number> {
    let received = 0;
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      assert.ok(Buffer.alloc(part.value.length, byte).equals(part.value), "bytes of another chunk");
      received += part.value.length;
    }
    return received;
  }

  test("that are the client's already leave its connection as it is", async (context) => {
    const server = await startServer(context, { tailCacheBytes: 64 * 1024 });
    await server.send("PUT", "a", { body: Buffer.alloc(MIB) });
    const connection = await server.connect();
    connection.write(requestBytes("GET", "a"));
    const { headers, body } = await connection.answer();
    assert.equal(body.length, MIB);
    for (let round = 0; round < 3; round += 1) {
      connection.write(requestBytes("GET", "a", { headers: { "If-None-Match": headers["etag"] ?? "" } }));
      assert.equal((await connection.answer()).status, 304);
    }
  });

  test("are each reader's own, also those of a slow one and behind one that left", async (context) => {
    const { server } = await startServer(context, { chunkBytes: CHUNK_BYTES, tailCacheBytes: 64 * 1024 });
    const url = `${server.url}s`;
    const headers = { "Content-Type": "text/plain" };
    await fetch(url, { method: "PUT", headers });
    const offsets = ["0000000000000000_0000000000000000"];
    for (const byte of [1, 2, 3]) {
      const answer = await fetch(url, { method: "POST", headers, body: Buffer.alloc(CHUNK_BYTES, byte) });
      offsets.push(answer.headers.get("stream-next-offset") ?? "");
    }
    const begin = async (index: number, signal?: AbortSignal): Promise<ReadableStreamDefaultReader<Uint8Array>> => {
      const { body } = await fetch(`${url}?offset=${offsets[index] ?? ""}`, signal === undefined ? {} : { signal });
      assert.ok(body !== null);
      return body.getReader();
    };
    const slow = connect(server.port, "127.0.0.1");
    context.after(() => slow.destroy());
    slow.write(`GET ${new URL(url).pathname}?offset=${offsets[0] ?? ""} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    // Its answer has begun, and stops where nobody reads.
    await once(slow, "readable");
    const leaving = new AbortController();
    await (await begin(1, leaving.signal)).read();
    leaving.abort();
    for (const index of [1, 2, 1]) assert.equal(await readRest(await begin(index), index + 1), CHUNK_BYTES);
    const parts: Buffer[] = [];
    for await (const part of slow) parts.push(part as Buffer);
    const answer = Buffer.concat(parts);
    const body = answer.subarray(answer.indexOf("\r\n\r\n") + 4);
    assert.ok(body.equals(Buffer.alloc(CHUNK_BYTES, 1)), "bytes of another chunk");
  });
});
