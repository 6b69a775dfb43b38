import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { passMessages, placeOfLast } from "../../../src/stream/loaded/sought-place.js";
import type { PassedMessages } from "../../../src/stream/rules/fork.js";
import { appendTo } from "../../helpers/append.js";
import { Barrier } from "../../helpers/watched-files.js";
import { JSON_CONFIG, jsonOf, streamOf } from "../../helpers/streams.js";

describe("a sought place", () => {
  test("in a large append of JSON is the beginning of a message", async (t) => {
    const { stream } = await streamOf(t, JSON_CONFIG);
    const messages = Array.from({ length: 3000 }, (_, at) => JSON.stringify("x".repeat(at % 400)));
    assert.equal((await appendTo(stream, jsonOf(`[${messages.join(",")}]`))).kind, "appended");
    for (const count of [1, 2, 1500, 2999, 3000, 3001]) {
      const from = await stream.locate({ kind: "last", count });
      assert.ok(typeof from !== "object");
      const { bytes } = await stream.read(from, 64 * 1024 * 1024);
      assert.deepEqual(
        bytes.toString().trimEnd().split("\n"),
        messages.slice(-count).map((message) => `${message},`),
      );
    }
    assert.equal(await stream.locate({ kind: "last", count: 3001 }), "start");
    assert.equal(await stream.locate({ kind: "since", atMs: 0 }), "start");
    assert.equal(await stream.locate({ kind: "since", atMs: 1e15 }), stream.tail);
  });

  test("too far into one append is refused, before more is read than a bound", async (t) => {
    const { engine, stream } = await streamOf(t, JSON_CONFIG);
    const step = Buffer.alloc(256 * 1024, "x");
    let readBytes = 0;
    // The append that its first message takes more of than the bound.
    const storage = Object.create(engine.storage, {
      placeOfLast: { value: async () => ({ position: 0, skip: 1 }) },
      read: { value: async () => ((readBytes += step.length), step) },
    });
    const stored = Object.create(stream.stored, { state: { value: { tail: 2 ** 30 } } });
    const sought = { stored, isJson: true, retain() {}, release() {} };
    const refused = await placeOfLast(storage, sought, 1);
    assert.ok(typeof refused === "object" && refused.code === "invalid-offset");
    assert.equal(readBytes, 64 * 1024 * 1024);
  });

  test("is sought by one of many at a time, and for no client that has gone", async (t) => {
    const { engine, stream } = await streamOf(t, JSON_CONFIG);
    const disk = new Barrier();
    let reads = 0;
    let reading: () => void = () => undefined;
    const isReading = new Promise<void>((resolve) => (reading = resolve));
    const storage = Object.create(engine.storage, {
      placeOfLast: { value: async () => ({ position: 0, skip: 1_000_000 }) },
      read: {
        value: async (_stored: unknown, _from: number, maxBytes: number) => {
          reads += 1;
          reading();
          await disk.opened;
          return Buffer.alloc(maxBytes, "x");
        },
      },
    });
    const stored = Object.create(stream.stored, { state: { value: { tail: 4 * 1024 * 1024 } } });
    const sought = { stored, isJson: true, retain() {}, release() {} };
    const client = { isGone: false };
    const all = Array.from({ length: 200 }, () => placeOfLast(storage, sought, 1, client));
    await isReading;
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    assert.equal(reads, 1);
    client.isGone = true;
    disk.open();
    for (const { status } of await Promise.allSettled(all)) assert.equal(status, "rejected");
    assert.equal(reads, 1);
  });

  test("behind messages is found at their end, however long they are, and past the tail by how many are missing", async (t) => {
    const { engine, stream } = await streamOf(t, JSON_CONFIG);
    const long = `"${"x".repeat(600 * 1024)}"`;
    assert.equal((await appendTo(stream, jsonOf(`[1,${long},2]`))).kind, "appended");
    const after = (count: number): Promise<PassedMessages | null> => passMessages(engine.storage, stream, 0, count);
    const end = 3 + long.length + 2;
    assert.deepEqual(await after(1), { position: 3, left: 0 });
    assert.deepEqual(await after(2), { position: end, left: 0 });
    assert.deepEqual(await after(3), { position: end + 3, left: 0 });
    assert.deepEqual(await after(5), { position: stream.tail, left: 2 });
  });

  test("in an empty stream is its tail", async (t) => {
    const { stream } = await streamOf(t);
    assert.equal(await stream.locate({ kind: "last", count: 5 }), 0);
    assert.equal(await stream.locate({ kind: "since", atMs: 0 }), 0);
  });
});
