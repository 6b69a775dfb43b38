import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readChunk, type ChunkBounds } from "../../../src/stream/loaded/chunk.js";
import { ReadRoom } from "../../../src/stream/loaded/read-room.js";
import { Stream, TrimmedStreamError, type Chunk } from "../../../src/stream/loaded/stream.js";
import { appendTo } from "../../helpers/append.js";
import { append, bytesOf, created, loaded, openEngine, reopen } from "../../helpers/engine.js";
import { Barrier } from "../../helpers/watched-files.js";
import { commandOf, JSON_CONFIG, jsonOf, streamIn, streamOf, streamOnDisk } from "../../helpers/streams.js";

describe("reading", () => {
  async function readOf(stream: Stream, from: number, maxBytes: number): Promise<Chunk> {
    return stream.read(from, maxBytes);
  }

  test("gives about as much as asked for, and says whether that is all", async (t) => {
    const { stream } = await streamOf(t, {}, "01234");
    await appendTo(stream, commandOf("56789"));
    assert.deepEqual(await readOf(stream, 2, 3), {
      kind: "chunk",
      from: 2,
      to: 5,
      bytes: Buffer.from("234"),
      upToDate: false,
      closed: false,
    });
    assert.deepEqual(await readOf(stream, 5, 100), {
      kind: "chunk",
      from: 5,
      to: 10,
      bytes: Buffer.from("56789"),
      upToDate: true,
      closed: false,
    });
    assert.deepEqual(await readOf(stream, 10, 100), {
      kind: "chunk",
      from: 10,
      to: 10,
      bytes: Buffer.alloc(0),
      upToDate: true,
      closed: false,
    });
  });

  test("ends where an append ended; one that is longer comes whole, unless the reader wants no more than so much", async (t) => {
    const { stream } = await streamOf(t, {}, "01");
    for (const body of ["2", "3456", "789"]) await appendTo(stream, commandOf(body));
    const table: [from: number, maxBytes: number, text: string][] = [
      [0, 1, "01"],
      [0, 2, "01"],
      [0, 4, "012"],
      [1, 1, "1"],
      [3, 1, "3456"],
      [4, 2, "456"],
      [0, 7, "0123456"],
      [0, 9, "0123456"],
      [0, 10, "0123456789"],
    ];
    for (const [from, maxBytes, text] of table)
      assert.equal((await readOf(stream, from, maxBytes)).bytes.toString(), text, `from ${from}, about ${maxBytes}`);
    const within = async (from: number, maxBytes: number, bounds: ChunkBounds): Promise<string> =>
      (await stream.read(from, maxBytes, { bounds })).bytes.toString();
    for (const [longestBytes, text] of [
      [3, "34"],
      [4, "3456"],
    ] as const)
      assert.equal(await within(3, 2, { longestBytes, leastBytes: 0 }), text);
    for (const [leastBytes, text] of [
      [1, "2"],
      [2, "2345"],
    ] as const)
      assert.equal(await within(2, 4, { longestBytes: Infinity, leastBytes }), text);
  });

  test("tells of closure only at the end", async (t) => {
    const { stream } = await streamOf(t, {}, "01234");
    await appendTo(stream, commandOf("56789", { closes: true }));
    assert.equal((await readOf(stream, 0, 5)).closed, false);
    assert.equal((await readOf(stream, 5, 5)).closed, true);
    assert.equal((await readOf(stream, 10, 5)).closed, true);
  });

  test("gathers pieces of several segments into one chunk", async (t) => {
    const { stream } = await streamOf(t);
    const parts = [3000, 3000, 5000, 100, 3000].map((size, index) => bytesOf(size, index));
    for (const part of parts) await appendTo(stream, commandOf(part));
    const whole = Buffer.concat(parts);
    for (const [from, maxBytes, to] of [
      [0, 14_100, 14_100],
      [2999, 4000, 6000],
      [2999, 9000, 11_100],
      [1, 11_000, 11_000],
      [5999, 5101, 11_100],
      [0, 1, 3000],
    ] as const) {
      const chunk = await readOf(stream, from, maxBytes);
      assert.ok(chunk.bytes.equals(whole.subarray(from, to)), `${from}, ${maxBytes}`);
    }
  });

  test("a JSON chunk ends at a whole message", async (t) => {
    const { stream } = await streamOf(t, JSON_CONFIG);
    for (const body of ["[11,22]", "33"]) await appendTo(stream, jsonOf(body));
    const table: [from: number, maxBytes: number, text: string][] = [
      [0, 4, "11,\n"],
      [0, 5, "11,\n"],
      [0, 7, "11,\n"],
      [0, 8, "11,\n22,\n"],
      [4, 100, "22,\n33,\n"],
      [8, 4, "33,\n"],
    ];
    for (const [from, maxBytes, text] of table)
      assert.equal((await readOf(stream, from, maxBytes)).bytes.toString(), text, `${from}, ${maxBytes}`);
  });

  test("a JSON message longer than the chunk is not read on for clients that have gone", async (t) => {
    const { engine, stream } = await streamOf(t, JSON_CONFIG);
    const chunkBytes = 1024 * 1024;
    const longBytes = 3 * chunkBytes;
    const disk = new Barrier();
    let reads = 0;
    const storage = Object.create(engine.storage, {
      read: {
        value: async (_stored: unknown, from: number, maxBytes: number) => {
          reads += 1;
          await disk.opened;
          return Buffer.alloc(maxBytes, from + maxBytes < longBytes ? "x" : "\n");
        },
      },
    });
    const parts = { storage, readRoom: new ReadRoom() };
    const served = { stored: stream.stored, isJson: true, tail: longBytes, closed: false, retain() {}, release() {} };
    const readFor = async (client: { readonly isGone: boolean }): Promise<Chunk> => readChunk(parts, served, 0, chunkBytes, { client });
    const client = { isGone: false };
    const left = Array.from({ length: 50 }, () => readFor(client));
    client.isGone = true;
    disk.open();
    for (const { status } of await Promise.allSettled(left)) assert.equal(status, "rejected");
    assert.equal(reads, 4, "the beginnings that were being read already: those of one turn");
    assert.equal((await readFor({ isGone: false })).to, longBytes);
  });

  test("a JSON message longer than the chunk comes whole", async (t) => {
    const { stream } = await streamOf(t, JSON_CONFIG);
    const long = JSON.stringify("x".repeat(10_000));
    for (const body of ["1", long, "2"]) await appendTo(stream, jsonOf(body));
    assert.equal((await readOf(stream, 0, 100)).bytes.toString(), "1,\n");
    for (const maxBytes of [1, 100, 9999]) {
      const text = (await readOf(stream, 3, maxBytes)).bytes.toString();
      assert.ok(text.startsWith(`${long},\n`) && text.endsWith(",\n") && text.length <= 2 * (long.length + 2), `at most ${maxBytes}`);
    }
    const rest = await readOf(stream, 3 + long.length + 2, 100);
    assert.deepEqual([rest.bytes.toString(), rest.upToDate], ["2,\n", true]);
  });

  test("shows only what is durable", async (t) => {
    const { engine, stream } = await streamOf(t, {}, "old");
    const disk = engine.files.holdJournal();
    const appended = appendTo(stream, commandOf("new"));
    await engine.files.idle();
    const chunk = await readOf(stream, 0, 100);
    assert.deepEqual([chunk.bytes.toString(), chunk.upToDate], ["old", true]);
    disk.open();
    await appended;
    assert.equal((await readOf(stream, 0, 100)).bytes.toString(), "oldnew");
  });

  test("from the start begins where the stream does by then, whatever is dropped meanwhile", async (t) => {
    for (const dropped of [4000, 8000, 12_000]) {
      const { engine, stream, trim } = await streamOnDisk(t, [bytesOf(4000), bytesOf(4000, 1), bytesOf(4000, 2)]);
      const disk = new Barrier();
      engine.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".seg") ? disk.opened : undefined);
      const reading = stream.read("start", 100_000);
      await trim(dropped);
      disk.open();
      const { from, to, bytes } = await reading;
      assert.deepEqual([from, to, bytes.length], [dropped, 12_000, 12_000 - dropped]);
    }
  });

  test("from a place that is dropped meanwhile is told so", async (t) => {
    const { engine, stream, trim } = await streamOnDisk(t, [bytesOf(4000), bytesOf(4000, 1)]);
    const disk = new Barrier();
    engine.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".seg") ? disk.opened : undefined);
    const reading = readOf(stream, 0, 100);
    await trim(4000);
    disk.open();
    await assert.rejects(reading, TrimmedStreamError);
  });

  test("keeps the stream in memory while it looks on the disk for the end of an append", async (t) => {
    const first = await openEngine();
    const stored = await created(first.storage, "s", "01", { contentType: "text/plain" });
    // As many as have an index in a file of its own.
    await Promise.all(Array.from({ length: 300 }, () => append(first.storage, stored, "2345")));
    const engine = await reopen(first);
    t.after(() => engine.storage.close());
    const stream = streamIn(engine, await loaded(engine.storage, "s"));
    const index = new Barrier();
    engine.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".idx") ? index.opened : undefined);
    const reading = readOf(stream, 0, 3);
    await engine.files.idle();
    assert.equal(engine.files.count("open", /\.idx$/), 1);
    assert.equal(stream.idle, false);
    index.open();
    assert.equal((await reading).bytes.toString(), "01");
    assert.equal(stream.idle, true);
  });

  test("keeps the stream in memory while it gathers", async (t) => {
    const { stream } = await streamOf(t);
    for (const size of [3000, 3000]) await appendTo(stream, commandOf(bytesOf(size)));
    const reading = stream.read(0, 6000);
    assert.equal(stream.idle, false);
    await reading;
    assert.equal(stream.idle, true);
  });
});
