import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, test } from "node:test";
import { ReadBuffers } from "../../src/http/read-buffers.js";
import { ManualClock } from "../helpers/manual-clock.js";
import { Random } from "../helpers/random.js";
import { startServer } from "../helpers/test-server.js";

const MIB = 1024 * 1024;

/** An answer of which nothing but its end is asked. */
function answer(): ServerResponse {
  return new EventEmitter() as ServerResponse;
}

describe("memory for reads", () => {
  test("is used again once its answer is over, and not before", () => {
    const buffers = new ReadBuffers(MIB, new ManualClock());
    const first = buffers.allocate(MIB);
    const res = answer();
    buffers.takeBackAfter(res, first);
    const second = buffers.allocate(MIB);
    assert.notEqual(second.buffer, first.buffer);
    res.emit("close");
    const third = buffers.allocate(MIB - 1);
    assert.equal(third.buffer, first.buffer);
    assert.equal(third.length, MIB - 1);
    assert.notEqual(buffers.allocate(MIB).buffer, first.buffer);
  });

  test("comes back also where less of it was used", () => {
    const buffers = new ReadBuffers(MIB, new ManualClock());
    const first = buffers.allocate(MIB);
    const res = answer();
    buffers.takeBackAfter(res, first.subarray(0, MIB - 100));
    res.emit("close");
    assert.equal(buffers.allocate(MIB).buffer, first.buffer);
  });

  test("comes back once", () => {
    const buffers = new ReadBuffers(MIB, new ManualClock());
    const memory = buffers.allocate(MIB);
    const answers = [answer(), answer()];
    for (const res of answers) buffers.takeBackAfter(res, memory);
    for (const res of answers) res.emit("close");
    assert.notEqual(buffers.allocate(MIB).buffer, buffers.allocate(MIB).buffer);
  });

  test("that was not lent here is left alone", () => {
    const buffers = new ReadBuffers(MIB, new ManualClock());
    const foreign = Buffer.allocUnsafeSlow(MIB);
    const res = answer();
    buffers.takeBackAfter(res, foreign);
    assert.equal(res.listenerCount("close"), 0);
    assert.notEqual(buffers.allocate(MIB).buffer, foreign.buffer);
  });

  for (const bytes of [0, 1, MIB / 2, MIB + 1]) {
    test(`for ${bytes} bytes is just as large`, () => {
      const memory = new ReadBuffers(MIB, new ManualClock()).allocate(bytes);
      assert.deepEqual([memory.length, memory.buffer.byteLength], [bytes, bytes]);
    });
  }

  for (const { bufferBytes, kept } of [
    { bufferBytes: MIB, kept: 16 },
    { bufferBytes: 6 * MIB, kept: 2 },
    { bufferBytes: 17 * MIB, kept: 0 },
  ]) {
    test(`of which ${kept} buffers of ${bufferBytes / MIB} MiB wait at the most`, () => {
      const buffers = new ReadBuffers(bufferBytes, new ManualClock());
      const lent = Array.from({ length: 20 }, () => buffers.allocate(bufferBytes));
      for (const memory of lent) {
        const res = answer();
        buffers.takeBackAfter(res, memory);
        res.emit("close");
      }
      const known = new Set(lent.map(({ buffer }) => buffer));
      const again = Array.from({ length: 20 }, () => buffers.allocate(bufferBytes));
      assert.equal(again.filter(({ buffer }) => known.has(buffer)).length, kept);
    });
  }

  test("is let go of when nobody asks for it", async () => {
    const clock = new ManualClock();
    const buffers = new ReadBuffers(MIB, clock);
    const memory = buffers.allocate(MIB);
    const res = answer();
    buffers.takeBackAfter(res, memory);
    res.emit("close");
    clock.advance(10_000);
    assert.notEqual(buffers.allocate(MIB).buffer, memory.buffer);
  });
});

describe("chunks that share memory one after another", () => {
  const CHUNK_BYTES = 256 * 1024;
  const CHUNKS = 24;
  const SEED = 7;

  test(`are each reader's own, also when others leave in the middle (seed ${SEED})`, async (context) => {
    const { server } = await startServer(context, { chunkBytes: CHUNK_BYTES, tailCacheBytes: 64 * 1024 });
    const url = `${server.url}s`;
    await fetch(url, { method: "PUT", headers: { "Content-Type": "text/plain" } });
    const offsets = ["0000000000000000_0000000000000000"];
    for (let index = 0; index < CHUNKS; index += 1) {
      const { headers } = await fetch(url, { method: "POST", headers: { "Content-Type": "text/plain" }, body: Buffer.alloc(CHUNK_BYTES, index + 1) });
      offsets.push(headers.get("stream-next-offset") ?? "");
    }
    const random = new Random(SEED);
    const readOne = async (): Promise<void> => {
      const index = random.integer(0, CHUNKS - 1);
      const leaving = new AbortController();
      const { body } = await fetch(`${url}?offset=${offsets[index] ?? ""}`, { signal: leaving.signal });
      assert.ok(body !== null);
      let received = 0;
      const reader = body.getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        assert.ok(part.value.every((byte: number) => byte === index + 1), `chunk ${index} has bytes of another one`);
        received += part.value.length;
        if (!random.chance(1 / 4)) continue;
        leaving.abort();
        return;
      }
      assert.equal(received, CHUNK_BYTES);
    };
    const readMany = async (): Promise<void> => {
      for (let count = 0; count < 25; count += 1) await readOne();
    };
    await Promise.all(Array.from({ length: 8 }, readMany));
  });
});
