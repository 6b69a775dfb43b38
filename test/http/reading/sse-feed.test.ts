import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { describe, test } from "node:test";
import type { Context } from "../../../src/http/context/context.js";
import type { Exchange } from "../../../src/http/exchange/exchange.js";
import { SseFeed } from "../../../src/http/reading/sse-feed.js";
import type { UnreadAnswers } from "../../../src/http/bounds/unread.js";
import { defaultSettings } from "../../../src/options.js";
import { LiveFeed, type Advance } from "../../../src/stream/loaded/live.js";
import type { Chunk, Stream } from "../../../src/stream/loaded/stream.js";
import { httpParts } from "../../helpers/http-parts.js";
import { ManualClock } from "../../helpers/manual-clock.js";
import { follow, nextPair } from "../../helpers/sse-client.js";
import { startServer } from "../../helpers/test-server.js";

/** Room for one of the longest appends here, not for two. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** A connection that keeps what is written to it. */
class FakeResponse extends EventEmitter {
  readonly headersSent = true;
  readonly writable = true;
  readonly written: Buffer[] = [];
  isFull = false;
  isEnded = false;

  write(bytes: Buffer): boolean {
    this.written.push(bytes);
    return !this.isFull;
  }

  end(): void {
    this.isEnded = true;
  }
}

/** A stream of letters in memory, whose tokens are its positions. */
class FakeStream {
  readonly config: { readonly contentType: string };
  readonly feed = new LiveFeed();
  readonly reads: string[] = [];
  bytes = Buffer.alloc(0);
  closed = false;
  users = 0;
  /** Reads wait for `letGo` when set. */
  isSlow = false;
  /** What reads meet, at once or later. */
  fault: { readonly isAtOnce: boolean } | null = null;
  #waiting: (() => void)[] = [];
  /** Where appends ended. */
  readonly #ends: number[] = [];

  constructor(contentType: string) {
    this.config = { contentType };
  }

  get tail(): number {
    return this.bytes.length;
  }

  offsetAt(position: number): string {
    return `@${position}`;
  }

  follow(onAdvance: (advance: Advance) => void, onEnd: () => void): () => void {
    this.retain();
    this.feed.on("advance", onAdvance).on("end", onEnd);
    return () => {
      this.feed.off("advance", onAdvance).off("end", onEnd);
      this.release();
    };
  }

  retain(): void {
    this.users += 1;
  }

  release(): void {
    this.users -= 1;
  }

  read(from: number, maxBytes: number): Chunk | Promise<Chunk> {
    this.reads.push(`${from}+${maxBytes}`);
    const chunk = this.#chunk(from, maxBytes);
    if (this.fault?.isAtOnce === true) throw new Error("the disk is gone");
    if (this.fault !== null) return Promise.reject(new Error("the disk is gone"));
    if (!this.isSlow) return chunk;
    return new Promise((resolve) => this.#waiting.push(() => resolve(chunk)));
  }

  letGo(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Appends pieces that become durable together. */
  append(...pieces: string[]): void {
    for (const piece of pieces) {
      const from = this.tail;
      this.bytes = Buffer.concat([this.bytes, Buffer.from(piece)]);
      this.#ends.push(this.tail);
      this.feed.note(from, this.tail, this.closed);
    }
    this.feed.emitAdvance();
  }

  close(): void {
    this.closed = true;
    this.feed.note(this.tail, this.tail, true);
    this.feed.emitAdvance();
  }

  #chunk(from: number, maxBytes: number): Chunk {
    const end = this.#ends.findLast((at) => at > from && at <= from + maxBytes) ?? this.#ends.find((at) => at > from);
    const bytes = this.bytes.subarray(from, end);
    const to = from + bytes.length;
    return { kind: "chunk", from, to, bytes, upToDate: to === this.tail, closed: false };
  }
}

class Room {
  readonly stream: FakeStream;
  readonly clock = new ManualClock();
  readonly faults: string[] = [];
  readonly unread: UnreadAnswers;
  emptied = 0;
  readonly feed: SseFeed;

  constructor(contentType = "text/plain") {
    this.stream = new FakeStream(contentType);
    const log = { debug() {}, info() {}, warn() {}, error: (message: string) => void this.faults.push(message) };
    const { inFlight, unread } = httpParts({ clock: this.clock, maxLargeBytes: MAX_UNREAD_BYTES });
    const context = { clock: this.clock, log, random: () => 0.5, settings: defaultSettings(), inFlight, unread };
    this.unread = unread;
    // Registry and responder are not asked for here; the stream has all that a feed asks of one.
    this.feed = new SseFeed(context as unknown as Context, this.stream as unknown as Stream, () => (this.emptied += 1));
  }

  /** Starts a reader and lets it read what is there. */
  async join({
    position = this.stream.tail,
    cursorAhead = null as string | null,
    response = new FakeResponse(),
  } = {}): Promise<FakeResponse> {
    const socket = { writableLength: 0, destroy: () => void response.emit("destroyed") };
    const exchange = {
      req: { socket, method: "GET" },
      res: response,
      isAnswered: true,
      target: { path: "/" },
      slot: -1,
      hasClientEnded: false,
      onClientEnd: () => undefined,
      onRightEnd: () => undefined,
    };
    // All that a reader asks of an exchange.
    this.feed.add({ exchange: exchange as unknown as Exchange, from: position, cursorAhead, retryMs: 100 }).start();
    await settle();
    return response;
  }
}

/** Lets everything run that waits for promises only. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function dataOf(response: FakeResponse): string {
  return [
    ...Buffer.concat(response.written)
      .toString()
      .matchAll(/^event: data\ndata:(.*)$/gm),
  ]
    .map(([, data]) => data)
    .join("|");
}

describe("SSE readers that have caught up", () => {
  test("get one buffer, read and encoded once", async () => {
    const room = new Room();
    const readers = [await room.join(), await room.join(), await room.join()];
    room.stream.reads.length = 0;
    room.stream.append("a", "b");
    assert.deepEqual(room.stream.reads, ["0+2"]);
    const [first, ...others] = readers.map(({ written }) => written.at(-1));
    for (const other of others) assert.equal(other, first);
    for (const reader of readers) assert.equal(dataOf(reader), "a|b");
  });

  test("with cursors of their own get the same data with those", async () => {
    const room = new Room();
    const plain = await room.join();
    const ahead = await room.join({ cursorAhead: "1000000090" });
    room.stream.append("a");
    assert.equal(dataOf(ahead), "a");
    assert.notEqual(ahead.written.at(-1), plain.written.at(-1));
    assert.match(String(ahead.written.at(-1)), /"streamCursor":"1000000090"/);
  });

  test("get what became durable while it was read, in order", async () => {
    const room = new Room();
    const reader = await room.join();
    room.stream.isSlow = true;
    room.stream.append("a");
    room.stream.append("b", "c");
    room.stream.append("d");
    assert.equal(dataOf(reader), "");
    for (let round = 0; round < 3; round += 1) {
      room.stream.letGo();
      await settle();
    }
    assert.equal(dataOf(reader), "a|b|c|d");
  });

  test("get the closure behind the data that was being read", async () => {
    const room = new Room();
    const reader = await room.join();
    room.stream.isSlow = true;
    room.stream.append("a");
    room.stream.close();
    room.stream.letGo();
    await settle();
    assert.equal(dataOf(reader), "a");
    assert.match(String(reader.written.at(-1)), /"streamClosed":true/);
    assert.equal(reader.isEnded, true);
  });

  test("get each append as an event of its own, also where many become durable together", async () => {
    const room = new Room();
    const reader = await room.join();
    const pieces = Array.from({ length: 2000 }, (_, at) => String(at % 10));
    room.stream.append(...pieces);
    await settle();
    assert.equal(dataOf(reader), pieces.join("|"));
  });

  test("get each large append as an event of its own, also where they are longer together than a chunk", async () => {
    const room = new Room("image/png");
    const reader = await room.join();
    const pieces = Array.from({ length: 64 }, (_, at) => String(at % 10).repeat(20 * 1024));
    room.stream.append(...pieces);
    await settle();
    assert.deepEqual(
      dataOf(reader)
        .split("|")
        .map((data) => Buffer.from(data, "base64").toString()),
      pieces,
    );
  });

  for (const isAtOnce of [true, false]) {
    test(`meet a read that fails ${isAtOnce ? "at once" : "later"} each by itself`, async () => {
      const room = new Room();
      const readers = [await room.join(), await room.join()];
      const cut: FakeResponse[] = [];
      for (const reader of readers) reader.on("destroyed", () => cut.push(reader));
      room.stream.fault = { isAtOnce };
      room.stream.append("a");
      await settle();
      assert.deepEqual(cut, readers);
      assert.deepEqual(room.faults, ["a request failed", "a request failed"]);
    });
  }
});

describe("more SSE readers than are sent a stretch in one turn", () => {
  interface Crowd {
    readonly all: readonly FakeResponse[];
    readonly first: FakeResponse;
    readonly last: FakeResponse;
  }

  async function crowdIn(room: Room): Promise<Crowd> {
    const first = await room.join();
    const others = await Promise.all(Array.from({ length: 250 }, () => room.join()));
    const last = await room.join();
    return { all: [first, ...others, last], first, last };
  }

  /** Lets turns pass until the stretch that is being sent has reached everybody. */
  async function sent(): Promise<void> {
    for (let turn = 0; turn < 10; turn += 1) await settle();
  }

  test("let other work have its turn, and get what became durable meanwhile together", async () => {
    const room = new Room();
    const { all, first, last } = await crowdIn(room);
    room.stream.append("a");
    assert.deepEqual([dataOf(first), dataOf(last)], ["a", ""]);
    room.stream.append("b");
    await settle();
    room.stream.append("c");
    await sent();
    for (const reader of all) assert.equal(dataOf(reader), "a|b|c");
    assert.equal(first.written.at(-1), last.written.at(-1));
    assert.match(String(last.written.at(-1)), /data:b\n[^]*data:c\n/);
  });

  test("get a closure that came meanwhile", async () => {
    const room = new Room();
    const { all } = await crowdIn(room);
    room.stream.append("a");
    room.stream.close();
    await sent();
    for (const reader of all) {
      assert.deepEqual([dataOf(reader), reader.isEnded], ["a", true]);
      assert.match(String(reader.written.at(-1)), /"streamClosed":true/);
    }
  });

  test("one that comes or goes meanwhile leaves no event out and gets none twice", async () => {
    const room = new Room();
    const { first, last } = await crowdIn(room);
    const leaves = await room.join();
    room.stream.append("a");
    leaves.emit("close");
    const [comes, fromBefore] = await Promise.all([room.join(), room.join({ position: 0 })]);
    room.stream.reads.length = 0;
    room.stream.append("b");
    await sent();
    assert.deepEqual(room.stream.reads, ["1+1"]);
    assert.deepEqual([first, last, leaves, comes, fromBefore].map(dataOf), ["a|b", "a|b", "", "b", "a|b"]);
  });

  test("one that had it all before the stream was closed is told of the end", async () => {
    const room = new Room();
    await crowdIn(room);
    room.stream.isSlow = true;
    room.stream.append("a");
    room.stream.isSlow = false;
    const between = await room.join();
    room.stream.close();
    room.stream.letGo();
    await sent();
    assert.equal(between.isEnded, true);
  });

  test("one whose connection fails is alone in that", async () => {
    const room = new Room();
    const { all, last } = await crowdIn(room);
    room.stream.append("a");
    Object.defineProperty(last, "writable", {
      get: () => {
        throw new Error("the connection is gone");
      },
    });
    await sent();
    assert.deepEqual(all.map(dataOf), [...all.slice(1).map(() => "a"), ""]);
    assert.deepEqual(room.faults, ["a request failed"]);
  });
});

describe("an SSE reader whose connection is full", () => {
  test("is passed over, and reads on alone when there is room", async () => {
    const room = new Room();
    const slow = await room.join();
    const fast = await room.join();
    slow.isFull = true;
    room.stream.append("a");
    room.stream.append("b");
    room.stream.append("c");
    assert.equal(dataOf(slow), "a");
    assert.equal(dataOf(fast), "a|b|c");
    assert.equal(room.unread.bytes, slow.written.at(-1)?.length);
    slow.isFull = false;
    slow.emit("drain");
    await settle();
    assert.equal(room.unread.bytes, 0);
    assert.equal(dataOf(slow), "a|bc");
    room.stream.append("d");
    assert.equal(slow.written.at(-1), fast.written.at(-1), "it shares again");
  });

  test("counts as one that has not taken its answer, until it takes it or goes", async () => {
    const room = new Room();
    const slow = await room.join();
    slow.isFull = true;
    room.stream.append("a");
    assert.ok(room.unread.bytes > 0);
    slow.emit("close");
    assert.equal(room.unread.bytes, 0);
  });
});

describe("SSE: an append of bytes that is longer than a chunk", () => {
  const LONG = "a".repeat(MAX_UNREAD_BYTES / 2);
  const LONG_AS_SENT = Buffer.from(LONG).toString("base64");

  test("is one event, which readers share", async () => {
    const room = new Room("image/png");
    const readers = [await room.join(), await room.join(), await room.join()];
    for (const reader of readers) reader.isFull = true;
    room.stream.append(LONG);
    for (const reader of readers) {
      assert.equal(dataOf(reader), LONG_AS_SENT);
      assert.equal(reader.written.at(-1), readers[0]?.written.at(-1));
    }
    assert.equal(room.unread.bytes, readers[0]?.written.at(-1)?.length, "and counts once");
  });

  test("ends a reader for whom there is no room, between events", async () => {
    const room = new Room("image/png");
    const slow = await room.join();
    slow.isFull = true;
    room.stream.append(LONG);
    const heldBytes = room.unread.bytes;
    const late = await room.join({ position: 0 });
    assert.deepEqual([late.isEnded, dataOf(late)], [true, ""]);
    assert.equal(room.unread.bytes, heldBytes);
    slow.emit("drain");
    const again = await room.join({ position: 0 });
    assert.deepEqual([again.isEnded, dataOf(again)], [false, LONG_AS_SENT]);
  });
});

describe("an SSE reader that came in between two batches", () => {
  test("gets nothing twice", async () => {
    const room = new Room();
    const before = await room.join();
    room.stream.isSlow = true;
    room.stream.append("ab");
    room.stream.isSlow = false;
    const between = await room.join();
    room.stream.letGo();
    await settle();
    room.stream.append("c");
    await settle();
    assert.equal(dataOf(before), "ab|c");
    assert.equal(dataOf(between), "c");
  });
});

describe("SSE readers that are sent nothing", () => {
  const COMMENT = ":\n\n";

  test("get a comment, and those that were sent something do not", async () => {
    const room = new Room();
    const [quiet, full] = [await room.join(), await room.join()];
    const joinedMs = room.clock.nowMs();
    full.isFull = true;
    room.clock.advance(10);
    room.stream.append("a");
    const busyMs = room.clock.nowMs();
    room.clock.advance(10);
    const late = await room.join();
    const lateMs = room.clock.nowMs();
    const written = quiet.written.length;
    assert.equal(room.feed.beat(joinedMs, lateMs), busyMs);
    assert.equal(quiet.written.length, written, "it was sent an append meanwhile");
    assert.equal(room.feed.beat(busyMs, lateMs), lateMs);
    assert.equal(String(quiet.written.at(-1)), COMMENT);
    assert.notEqual(String(full.written.at(-1)), COMMENT, "what waits for it to read says as much");
    assert.notEqual(String(late.written.at(-1)), COMMENT);
    room.stream.append("b");
    assert.equal(dataOf(quiet), "a|b");
  });

  test("get none before the first event", async () => {
    const room = new Room();
    room.stream.isSlow = true;
    const waiting = await room.join();
    room.feed.beat(room.clock.nowMs(), room.clock.nowMs());
    assert.deepEqual(waiting.written, []);
    room.stream.letGo();
    await settle();
    assert.match(String(waiting.written[0]), /^retry: 100\nevent: control\n/);
  });
});

describe("the SSE feed of a stream", () => {
  test("keeps the stream while it has readers", async () => {
    const room = new Room();
    assert.equal(room.stream.users, 1);
    const reader = await room.join();
    room.feed.close();
    assert.equal(reader.isEnded, true);
    assert.deepEqual([room.stream.users, room.emptied, room.stream.feed.listenerCount("advance")], [0, 1, 0]);
  });

  test("reads nothing when nobody follows", async () => {
    const room = new Room();
    const reader = await room.join();
    reader.isFull = true;
    room.stream.append("a");
    room.stream.reads.length = 0;
    room.stream.append("b");
    assert.deepEqual(room.stream.reads, []);
  });
});

test("a thousand SSE readers over sockets get every event", async (context) => {
  const server = await startServer(context);
  await server.send("PUT", "a", { headers: { "Content-Type": "text/plain" } });
  const readers = await Promise.all(Array.from({ length: 1000 }, () => follow(server, "a?live=sse&offset=-1")));
  await Promise.all(readers.map(nextPair));
  for (const body of ["one", "two"]) await server.send("POST", "a", { headers: { "Content-Type": "text/plain" }, body });
  for (const reader of readers) {
    assert.equal((await nextPair(reader)).data, "one");
    assert.equal((await nextPair(reader)).data, "two");
  }
});
