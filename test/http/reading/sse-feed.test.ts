import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { dataOf, FakeResponse, MAX_UNREAD_BYTES, Room, settle } from "../../helpers/sse-room.js";

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

  test("one that had it all is told of an end that others get with their data", async () => {
    const room = new Room();
    const { all } = await crowdIn(room);
    room.stream.append("a");
    room.stream.append("b");
    const between = await room.join();
    assert.equal(dataOf(all.at(-1) ?? between), "", "the crowd still gets what came first");
    room.stream.close();
    await sent();
    for (const reader of [...all, between]) assert.match(String(reader.written.at(-1)), /"streamClosed":true/);
    assert.deepEqual([dataOf(between), between.isEnded], ["", true]);
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

  test("cuts a reader for whom there is no room before its first event, and counts that", async () => {
    const room = new Room("image/png");
    const slow = Object.assign(await room.join(), { isFull: true });
    room.stream.append(LONG);
    const heldBytes = room.unread.bytes;
    const late = new FakeResponse();
    const [cut] = await Promise.all([once(late, "destroyed"), room.join({ position: 0, response: late })]);
    assert.deepEqual([late.isEnded, dataOf(late), ...cut], [false, "", "overloaded"]);
    assert.equal(room.unread.bytes, heldBytes);
    slow.emit("drain");
    const again = await room.join({ position: 0 });
    assert.deepEqual([again.isEnded, dataOf(again)], [false, LONG_AS_SENT]);
  });

  test("ends a reader for whom there is no room between two events, and counts that", async () => {
    const room = new Room("image/png");
    const [slow, reader] = [Object.assign(await room.join(), { isFull: true }), await room.join()];
    room.stream.append(LONG);
    await settle();
    room.stream.append(LONG);
    await settle();
    assert.deepEqual([reader.isEnded, dataOf(reader)], [true, LONG_AS_SENT]);
    assert.deepEqual([slow.isEnded, dataOf(slow)], [false, LONG_AS_SENT]);
    assert.deepEqual(
      room.exchanges.map(({ code }) => code),
      [null, "overloaded"],
    );
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
