import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { CachedTail, TailCache } from "../../../../src/storage/file/memory/tail-cache.js";
import { bytesOf } from "../../../helpers/engine.js";

/** A stream as the cache sees it. */
class Cached {
  readonly cached = new CachedTail();
  written = 0;
  end = 0;
  readonly #cache: TailCache;

  constructor(cache: TailCache) {
    this.#cache = cache;
  }

  append(payload: Buffer, segmentStart = 0): void {
    this.#cache.append(this, segmentStart, this.end, payload);
    this.end += payload.length;
  }

  write(length = this.end - this.written): void {
    this.written += length;
    this.#cache.noteWritten(this, length);
  }
}

const KIB = 1024;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void; // Node's types have it only as a flag of the command

/** Memory of buffers that something still holds. */
function memoryInUse(): number {
  // What the first finds is still being freed beside this thread when it returns; the second waits for that.
  collect();
  collect();
  return process.memoryUsage().arrayBuffers;
}

test("what a stream drops leaves the cache, written or not", () => {
  const cache = new TailCache(1e6);
  const stream = new Cached(cache);
  for (const [size, segmentStart] of [
    [100, 0],
    [20 * KIB, 100],
    [30 * KIB, 100 + 20 * KIB],
  ] as const)
    stream.append(bytesOf(size), segmentStart);
  stream.write(60);
  cache.dropBefore(stream, 100 + 20 * KIB);
  assert.deepEqual([stream.cached.start, cache.bytes, cache.unwrittenBytes], [100 + 20 * KIB, 30 * KIB, 30 * KIB]);
  stream.written = 100 + 20 * KIB;
  stream.write();
  assert.equal(cache.unwrittenBytes, 0);
  cache.dropBefore(stream, stream.end);
  assert.deepEqual([cache.bytes, cache.unwrittenBytes, stream.cached.blocks.length], [0, 0, 0]);
});

describe("the cached tail", () => {
  test("reads what was appended, at any place, and ends early only where an append ended", () => {
    const stream = new Cached(new TailCache(1e6));
    const parts = [10, 1, 300, 20 * KIB, 5, 60 * KIB, 40].map((size, index) => bytesOf(size, index));
    const ends = new Set<number>();
    for (const part of parts) {
      stream.append(part);
      ends.add(stream.end);
    }
    const whole = Buffer.concat(parts);
    for (let from = 0; from < whole.length; from += 111) {
      for (const maxBytes of [1, 100, 1e6]) {
        const piece = stream.cached.read(from, maxBytes);
        assert.ok(piece.length > 0 && piece.length <= maxBytes);
        assert.ok(piece.equals(whole.subarray(from, from + piece.length)));
        if (piece.length < maxBytes) assert.ok(ends.has(from + piece.length), `a read ends at ${from + piece.length}`);
      }
    }
  });

  test("a slice that was handed out does not change when more is appended", () => {
    const stream = new Cached(new TailCache(1e6));
    stream.append(Buffer.from("first"));
    const piece = stream.cached.read(0, 100);
    for (let index = 0; index < 200; index += 1) stream.append(bytesOf(100, index));
    assert.equal(piece.toString(), "first");
  });

  test("a small payload is copied, and a large one is kept as it is", () => {
    const stream = new Cached(new TailCache(1e6));
    const [small, large] = [bytesOf(10), bytesOf(20 * KIB)];
    stream.append(small);
    stream.append(large);
    small.fill(0);
    assert.deepEqual(stream.cached.read(0, 10), bytesOf(10));
    assert.equal(stream.cached.read(10, 1e6).buffer, large.buffer);
  });

  test("a position before it is an error", () => {
    const stream = new Cached(new TailCache(1e6));
    assert.equal(stream.cached.start, Infinity);
    assert.throws(() => stream.cached.read(0, 1), RangeError);
    assert.throws(() => stream.cached.pendingRun(0, 1), RangeError);
  });

  test("runs to write end with their segment, their block, or the limit", () => {
    const cache = new TailCache(1e6);
    const stream = new Cached(cache);
    stream.append(bytesOf(100, 1), 0);
    stream.append(bytesOf(50, 2), 0);
    stream.append(bytesOf(70, 3), 150);
    cache.appendWritten(stream, 150, 220, bytesOf(30, 4), 0xabc);
    assert.deepEqual(stream.cached.pendingRun(0, 250), {
      position: 0,
      segmentStart: 0,
      bytes: Buffer.concat([bytesOf(100, 1), bytesOf(50, 2)]),
      writtenCrc: null,
    });
    assert.equal(stream.cached.pendingRun(20, 60).bytes.length, 40);
    assert.deepEqual(stream.cached.pendingRun(150, 250), { position: 150, segmentStart: 150, bytes: bytesOf(70, 3), writtenCrc: null });
    assert.equal(stream.cached.pendingRun(220, 250).writtenCrc, 0xabc);
  });
});

describe("the cache's bound", () => {
  test("bytes that are in segments leave when there are too many", () => {
    const cache = new TailCache(64 * KIB);
    const stream = new Cached(cache);
    for (let index = 0; index < 20; index += 1) {
      stream.append(bytesOf(20 * KIB, index));
      stream.write();
      assert.ok(cache.bytes <= 64 * KIB);
    }
    assert.equal(cache.unwrittenBytes, 0);
    assert.ok(stream.cached.start > 0 && stream.cached.start < stream.end);
    assert.deepEqual(stream.cached.read(stream.end - 20 * KIB, 1e6), bytesOf(20 * KIB, 19));
  });

  test("what was handed out is not used again for other bytes, nor is what was handed in", () => {
    const cache = new TailCache(128 * KIB);
    const stream = new Cached(cache);
    const largest = bytesOf(64 * KIB, 1);
    const copies: [Buffer, Buffer][] = [];
    const memory = new Set<ArrayBufferLike>();
    stream.append(largest);
    for (let index = 0; index < 3000; index += 1) {
      const from = stream.end;
      stream.append(bytesOf(KIB, index));
      if (index % 200 === 0) {
        const piece = stream.cached.read(from, KIB);
        copies.push([piece, Buffer.from(piece)]);
      }
      memory.add(stream.cached.pendingRun(from, stream.end).bytes.buffer);
      stream.write();
    }
    for (const [piece, copy] of copies) assert.ok(piece.equals(copy));
    assert.ok(largest.equals(bytesOf(64 * KIB, 1)));
    // 3,000 KiB in blocks of 64 went through less memory than that: the rest was used again.
    assert.ok(memory.size < 3000 / 64, `${memory.size} blocks`);
  });

  test("memory for long streams is made before they need it, and given up where others fill the cache", () => {
    const cache = new TailCache(8192 * KIB);
    const streams = [new Cached(cache), new Cached(cache)];
    const payload = bytesOf(KIB);
    const before = memoryInUse();
    for (let index = 0; index < 40; index += 1) streams[0]?.append(payload);
    const reserved = memoryInUse();
    assert.ok(reserved - before >= 7500 * KIB, `${reserved - before} bytes: the room of the cache`);
    for (let index = 0; index < 4000; index += 1) streams[index % 2]?.append(payload);
    const half = memoryInUse();
    assert.ok(half - reserved < 500 * KIB, `${half - reserved} bytes more for four megabytes`);
    const own = bytesOf(20 * KIB);
    for (let index = 0; index < 200; index += 1) streams[0]?.append(own);
    const full = memoryInUse();
    assert.ok(half - full > 2000 * KIB, `${half - full} bytes less`);
  });

  test("bytes that no segment has yet stay, whatever the bound", () => {
    const cache = new TailCache(KIB);
    const stream = new Cached(cache);
    for (let index = 0; index < 5; index += 1) stream.append(bytesOf(20 * KIB, index));
    assert.equal(cache.isOverfull, true);
    assert.equal(cache.unwrittenBytes, 100 * KIB);
    assert.equal(stream.cached.start, 0);
    stream.write();
    assert.equal(cache.isOverfull, false);
    assert.equal(cache.bytes, 0);
  });

  test("a block that is half written stays", () => {
    const cache = new TailCache(KIB);
    const stream = new Cached(cache);
    stream.append(bytesOf(20 * KIB));
    stream.write(10 * KIB);
    assert.equal(stream.cached.start, 0);
    assert.equal(cache.unwrittenBytes, 10 * KIB);
  });

  test("the stream that was read last loses its bytes last", () => {
    const cache = new TailCache(70 * KIB);
    const streams = [0, 1, 2].map(() => new Cached(cache));
    const [first, second, third] = streams;
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    for (const stream of streams) {
      stream.append(bytesOf(20 * KIB));
      stream.write();
    }
    cache.used(first);
    third.append(bytesOf(20 * KIB));
    assert.deepEqual(
      streams.map(({ cached }) => cached.start),
      [0, Infinity, 0],
    );
  });

  test("reading a stream that can lose nothing changes nothing", () => {
    const cache = new TailCache(KIB);
    const stream = new Cached(cache);
    stream.append(bytesOf(10));
    cache.used(stream);
    assert.equal(stream.cached.start, 0);
  });

  test("a dropped stream gives back all that it held", () => {
    const cache = new TailCache(1e6);
    const [gone, stays] = [new Cached(cache), new Cached(cache)];
    gone.append(bytesOf(500));
    gone.append(bytesOf(20 * KIB));
    gone.write(100);
    stays.append(bytesOf(10));
    const bytes = cache.bytes;
    cache.drop(gone);
    assert.ok(cache.bytes < bytes && cache.bytes > 0);
    assert.equal(cache.unwrittenBytes, 10);
    assert.equal(gone.cached.start, Infinity);
  });

  test("large payloads that are in their segment already count until the writer has passed them", () => {
    const cache = new TailCache(KIB);
    const stream = new Cached(cache);
    cache.appendWritten(stream, 0, 0, bytesOf(20 * KIB), 1);
    stream.end = 20 * KIB;
    assert.equal(cache.unwrittenBytes, 20 * KIB);
    stream.write();
    assert.deepEqual([cache.unwrittenBytes, cache.bytes], [0, 0]);
  });

  test("the count of bytes is that of the memory that blocks hold", () => {
    const cache = new TailCache(1e9);
    const stream = new Cached(cache);
    for (let index = 0; index < 3000; index += 1) stream.append(bytesOf(1 + (index % 200), index));
    assert.equal(
      cache.bytes,
      stream.cached.blocks.reduce((sum, { bytes }) => sum + bytes.length, 0),
    );
    assert.ok(cache.bytes < 2.1 * stream.end, "blocks have little spare room");
  });
});

test("what a read brought is kept in memory of the cache's own, and grows with what is appended", () => {
  const cache = new TailCache(1e6);
  const stream = new Cached(cache);
  const read = Buffer.from("what was read");
  stream.end = stream.written = read.length;
  cache.keep(stream, 0, 0, read);
  read.fill("x");
  // Node's pool is a buffer of 8 KiB, which a few bytes of would keep whole.
  assert.equal(stream.cached.last?.bytes.buffer.byteLength, 16 * KIB);
  stream.append(Buffer.from(", and more"));
  stream.write();
  assert.equal(stream.cached.read(0, 100).toString(), "what was read, and more");
  assert.deepEqual([cache.unwrittenBytes, cache.bytes], [0, stream.cached.last.bytes.length]);
});
