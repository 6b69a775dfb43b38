import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { parseOffset, START_TOKEN, type ParsedOffset } from "../../../src/protocol/offset.js";
import type { ProducerStamp, StreamConfig } from "../../../src/storage/storage.js";
import type { AppendCommand } from "../../../src/stream/rules/command.js";
import type { TtlMode } from "../../../src/stream/rules/expiry.js";
import { LoadedProducers } from "../../../src/stream/loaded/loaded-producers.js";
import type { Advance } from "../../../src/stream/loaded/live.js";
import type { AppendOutcome } from "../../../src/stream/rules/outcome.js";
import { KEEP_ALL } from "../../../src/stream/loaded/retention.js";
import { refuseRejected, Stream, TrimmedStreamError, type Chunk } from "../../../src/stream/loaded/stream.js";
import { appendTo } from "../../helpers/append.js";
import { append, bytesOf, created, loaded, openEngine, reopen, settled, type Engine } from "../../helpers/engine.js";
import { placeOf, tokenIn } from "../../helpers/tokens.js";
import { Barrier, diskError } from "../../helpers/watched-files.js";

interface TestStream {
  readonly engine: Engine;
  readonly stream: Stream;
}

/** A stream that is durable, in an engine of its own. */
async function streamOf(
  t: TestContext,
  config: Partial<StreamConfig> = {},
  initial: Buffer | string = "",
  ttlMode: TtlMode = "sliding",
): Promise<TestStream> {
  const engine = await openEngine();
  t.after(() => engine.storage.close());
  const stored = await created(engine.storage, "s", initial, { contentType: "text/plain", createdAtMs: engine.clock.nowMs(), ...config });
  return {
    engine,
    stream: new Stream(
      {
        storage: engine.storage,
        clock: engine.clock,
        ttlMode,
        retention: KEEP_ALL,
        producers: new LoadedProducers<Stream>(),
        hasRoomForProducer: () => true,
      },
      stored,
      null,
    ),
  };
}

/** A stream with these appends, each a segment of its own, of which memory has nothing; `trim` drops what is before a place. */
async function streamOnDisk(
  t: TestContext,
  appends: readonly Buffer[],
): Promise<TestStream & { readonly trim: (before: number) => Promise<void> }> {
  const first = await openEngine();
  const written = await created(first.storage, "s", "", { contentType: "text/plain" });
  for (const payload of appends) await append(first.storage, written, payload);
  const engine = await reopen(first);
  t.after(() => engine.storage.close());
  const { storage, clock, files } = engine;
  const stored = await loaded(storage, "s");
  const trim = async (before: number): Promise<void> => {
    storage.trim(stored, before);
    await settled(storage, stored);
    await files.idle();
  };
  return {
    engine,
    trim,
    stream: new Stream(
      { storage, clock, ttlMode: "sliding", retention: KEEP_ALL, producers: new LoadedProducers(), hasRoomForProducer: () => true },
      stored,
      null,
    ),
  };
}

const JSON_CONFIG = { contentType: "application/json" };

function commandOf(body: string | Buffer, more: Partial<AppendCommand> = {}): AppendCommand {
  return { contentType: "text/plain", body: Buffer.from(body), closes: false, producer: null, seq: null, ...more };
}

function jsonOf(body: string): AppendCommand {
  return commandOf(body, { contentType: "application/json" });
}

function producing(seq: number, epoch = 0): { producer: ProducerStamp } {
  return { producer: { id: "p", epoch, seq } };
}

function at(token: string): ParsedOffset {
  const parsed = parseOffset(token);
  assert.ok(parsed !== null);
  return parsed;
}

/** What has settled of `outcomes` so far: the rest is "waiting". */
async function soFar(engine: Engine, outcomes: readonly (AppendOutcome | Promise<AppendOutcome>)[]): Promise<string[]> {
  const gists = outcomes.map(() => "waiting");
  outcomes.forEach((outcome, index) => void Promise.resolve(outcome).then((done) => (gists[index] = gist(done))));
  await engine.files.idle();
  return gists;
}

function gist(outcome: AppendOutcome): string {
  if (outcome.kind === "refused") return outcome.code;
  return `${outcome.duplicate ? "duplicate" : "new"} ${placeOf(outcome.nextOffset)}${outcome.closed ? " closed" : ""}`;
}

describe("appending", () => {
  test("answers with the next offset once the bytes are durable, and not before", async (t) => {
    const { engine, stream } = await streamOf(t);
    const disk = engine.files.holdJournal();
    const appended = appendTo(stream, commandOf("hello", { seq: "1" }));
    assert.deepEqual(await soFar(engine, [appended]), ["waiting"]);
    assert.equal(stream.tail, 0);
    assert.equal(stream.reservedTail, 5);
    disk.open();
    assert.deepEqual(await appended, {
      kind: "appended",
      duplicate: false,
      hasData: true,
      nextOffset: tokenIn(stream.id, 5),
      closed: false,
      producer: null,
    });
    assert.equal(stream.tail, 5);
  });

  test("a producer's concurrent appends are taken in order, and each answers with its own end", async (t) => {
    const { stream } = await streamOf(t);
    const outcomes = await Promise.all([0, 1, 2].map((seq) => appendTo(stream, commandOf("ab", producing(seq)))));
    assert.deepEqual(outcomes.map(gist), ["new 0_2", "new 0_4", "new 0_6"]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.kind === "appended" && outcome.producer?.seq),
      [0, 1, 2],
    );
  });

  test("a duplicate of an append in flight waits until that is durable", async (t) => {
    const { engine, stream } = await streamOf(t);
    const disk = engine.files.holdJournal();
    const outcomes = [appendTo(stream, commandOf("ab", producing(0))), appendTo(stream, commandOf("ab", producing(0)))];
    assert.deepEqual(await soFar(engine, outcomes), ["waiting", "waiting"]);
    disk.open();
    assert.deepEqual(await soFar(engine, outcomes), ["new 0_2", "duplicate 0_2"]);
  });

  test("a refusal that cites a state in flight waits until that is durable", async (t) => {
    const { engine, stream } = await streamOf(t);
    const disk = engine.files.holdJournal();
    const outcomes = [
      appendTo(stream, commandOf("end", { closes: true })),
      appendTo(stream, commandOf("late")),
      appendTo(stream, commandOf("", { closes: true })),
      appendTo(stream, commandOf("x", { ...producing(3) })),
    ];
    assert.deepEqual(await soFar(engine, outcomes), ["waiting", "waiting", "waiting", "waiting"]);
    disk.open();
    assert.deepEqual(await soFar(engine, outcomes), ["new 0_3 closed", "stream-closed", "duplicate 0_3 closed", "stream-closed"]);
    const late = await appendTo(stream, commandOf("late"));
    assert.ok(late.kind === "refused");
    assert.deepEqual([late.closed, late.nextOffset], [true, tokenIn(stream.id, 3)]);
  });

  test("a duplicate is answered at once where nothing is in flight", async (t) => {
    const { stream } = await streamOf(t);
    await appendTo(stream, commandOf("ab", producing(0)));
    const gists: string[] = [];
    const pending = stream.append(commandOf("ab", producing(0)), (outcome) => gists.push(gist(outcome)));
    assert.ok(!(pending instanceof Promise));
    assert.deepEqual(gists, ["duplicate 0_2"]);
  });

  test("when the disk is full everything in flight is refused, and nothing of it counts", async (t) => {
    const { engine, stream } = await streamOf(t);
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    const outcomes = await Promise.all([
      appendTo(stream, commandOf("ab", { ...producing(0), seq: "5" })),
      appendTo(stream, commandOf("ab", producing(0))),
      appendTo(stream, commandOf("cd", producing(1))),
      appendTo(stream, commandOf("", { closes: true })),
    ]);
    assert.deepEqual(outcomes.map(gist), ["storage-full", "storage-full", "storage-full", "storage-full"]);
    assert.deepEqual([stream.tail, stream.reservedTail, stream.reservedClosed], [0, 0, false]);
    assert.equal(gist(await appendTo(stream, commandOf("x"))), "storage-full");
    engine.files.gate = null;
    engine.clock.advance(1000);
    await engine.files.idle();
    assert.equal(gist(await appendTo(stream, commandOf("ab", { ...producing(0), seq: "1" }))), "new 0_2");
  });

  test("a refused append changes nothing: not the producer, not the sequence", async (t) => {
    const { stream } = await streamOf(t);
    await appendTo(stream, commandOf("a", { ...producing(0), seq: "5" }));
    assert.equal(gist(await appendTo(stream, commandOf("b", { ...producing(1), seq: "4" }))), "stream-seq-regression");
    assert.equal(gist(await appendTo(stream, commandOf("b", { ...producing(0, 7), seq: "5" }))), "stream-seq-regression");
    assert.equal(gist(await appendTo(stream, commandOf("b", { ...producing(1), seq: "6" }))), "new 0_2");
  });

  test("the producer's echo is the highest accepted number, also for an old duplicate", async (t) => {
    const { stream } = await streamOf(t);
    for (const seq of [0, 1, 2]) await appendTo(stream, commandOf("a", producing(seq)));
    const outcome = await appendTo(stream, commandOf("a", producing(0)));
    assert.ok(outcome.kind === "appended");
    assert.deepEqual([outcome.duplicate, outcome.producer?.epoch, outcome.producer?.seq], [true, 0, 2]);
  });

  for (const [rejection, code] of [
    ["overloaded", "overloaded"],
    ["tail-moved", "overloaded"],
    ["storage-full", "storage-full"],
    ["storage-unavailable", "storage-unavailable"],
  ] as const) {
    test(`what storage does not take for ${rejection} is refused as ${code}`, () =>
      assert.deepEqual(refuseRejected(rejection), { kind: "refused", code }));
  }
});

describe("waiting until the state is durable", () => {
  test("is no waiting where it is", async (t) => {
    const { stream } = await streamOf(t);
    assert.equal(
      stream.whenDurable(() => 7),
      7,
    );
  });

  test("ends with the answer, made from the state as it is then", async (t) => {
    const { engine, stream } = await streamOf(t);
    const disk = engine.files.holdJournal();
    const appended = appendTo(stream, commandOf("abc"));
    const waited = stream.whenDurable(() => stream.tail);
    await engine.files.idle();
    disk.open();
    assert.deepEqual([await waited, gist(await appended)], [3, "new 0_3"]);
  });

  test("ends with a refusal where the disk failed", async (t) => {
    const { engine, stream } = await streamOf(t);
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("EIO") : undefined);
    void appendTo(stream, commandOf("abc"));
    assert.deepEqual(await stream.whenDurable(() => 7), { kind: "refused", code: "storage-unavailable" });
  });
});

describe("offsets", () => {
  /** Four segments of 1000, 4000, 3500 and 9000 bytes. */
  async function segmented(t: TestContext): Promise<TestStream & { tokens: string[] }> {
    const made = await streamOf(t);
    const tokens: string[] = [made.stream.offsetAt(0)];
    for (const size of [1000, 4000, 3500, 9000]) {
      const outcome = await appendTo(made.stream, commandOf(bytesOf(size)));
      assert.ok(outcome.kind === "appended");
      tokens.push(outcome.nextOffset);
    }
    return { ...made, tokens };
  }

  test("a position has one token for ever, also where a segment began behind it", async (t) => {
    const { engine, stream, tokens } = await segmented(t);
    const positions = [0, 1000, 5000, 8500, 17_500];
    assert.deepEqual(tokens, [
      START_TOKEN,
      tokenIn(stream.id, 1000),
      tokenIn(stream.id, 4000, 1000),
      tokenIn(stream.id, 3500, 5000),
      tokenIn(stream.id, 9000, 8500),
    ]);
    assert.deepEqual(
      positions.map((position) => stream.offsetAt(position)),
      tokens,
    );
    await engine.storage.persist(stream.stored);
    assert.ok(engine.storage.release(stream.stored));
    const stored = await engine.storage.load("s");
    assert.ok(stored !== null);
    const again = new Stream(
      {
        storage: engine.storage,
        clock: engine.clock,
        ttlMode: "sliding",
        retention: KEEP_ALL,
        producers: new LoadedProducers<Stream>(),
        hasRoomForProducer: () => true,
      },
      stored,
      null,
    );
    assert.deepEqual(
      positions.map((position) => again.offsetAt(position)),
      tokens,
    );
    for (const [index, token] of tokens.entries()) assert.equal(again.locate(at(token)), positions[index]);
  });

  test("tokens sort as text in the order of their positions", async (t) => {
    const { stream } = await segmented(t);
    const tokens = Array.from({ length: 176 }, (_, index) => stream.offsetAt(index * 100));
    assert.deepEqual([...tokens].sort(), tokens);
  });

  test("the start, the tail and any byte of a text stream can be read from", async (t) => {
    const { stream } = await segmented(t);
    assert.equal(stream.locate({ kind: "start" }), "start");
    assert.equal((await stream.read("start", 100)).from, 0);
    assert.equal(stream.locate({ kind: "now" }), 17_500);
    assert.equal(stream.locate(at(tokenIn(stream.id, 1, 1000))), 1001);
    assert.equal(stream.locate(at(tokenIn(stream.id, 0, 1000))), 1000);
  });

  test("what was never given out is refused", async (t) => {
    const { stream } = await segmented(t);
    for (const [byte, start] of [
      [9001, 8500],
      [0, 17_500],
      [0, 1],
      [1001, 0],
      [4 * 1024 ** 3, 2 ** 53 - 1],
    ] as const) {
      const token = tokenIn(stream.id, byte, start);
      const located = await stream.locate(at(token));
      assert.ok(typeof located === "object" && located.code === "invalid-offset", token);
    }
  });

  test("one more than a token is the same place: clients exist that add 1 to get behind it", async (t) => {
    const { stream, tokens } = await segmented(t);
    for (const [index, token] of tokens.entries()) {
      const oneMore = token.replace(/\d+$/, (digits) => String(Number(digits) + 1).padStart(16, "0"));
      assert.equal(stream.locate(at(oneMore)), stream.locate(at(token)), `token ${index}`);
    }
  });

  test("a token of another incarnation is gone, wherever it points, and the answer tells where to begin anew", async (t) => {
    const { stream } = await segmented(t);
    for (const token of [tokenIn("another", 1000), tokenIn("another", 0, 1000), tokenIn("another", 3), tokenIn("another", 5, 99_999)]) {
      const located = await stream.locate(at(token));
      assert.ok(typeof located === "object");
      assert.deepEqual([located.code, located.earliestOffset], ["offset-gone", START_TOKEN], token);
    }
    assert.equal(stream.locate(at(START_TOKEN)), 0);
  });

  test("a place before the earliest retained byte is gone, and the answer tells the earliest", async (t) => {
    const { stream, engine } = await segmented(t);
    const before = stream.offsetAt(8500);
    engine.storage.trim(stream.stored, 8500);
    await new Promise<void>((resolve) => engine.storage.barrier(stream.stored, () => resolve()));
    const { earliest } = stream.stored;
    assert.ok(earliest > 0 && earliest <= 8500, `earliest is ${earliest}`);
    assert.deepEqual(await stream.locate(at(tokenIn(stream.id, 1000))), {
      kind: "refused",
      code: "offset-gone",
      earliestOffset: stream.offsetAt(earliest),
    });
    assert.equal((await stream.read("start", 100)).from, earliest);
    assert.equal(stream.locate(at(stream.offsetAt(earliest))), earliest);
    assert.equal(stream.locate(at(before)), 8500);
  });

  test("inside a JSON message reading can't begin, in memory and from a file", async (t) => {
    const { engine, stream } = await streamOf(t, JSON_CONFIG);
    for (const body of ['{"a":1}', "[2,3]"]) await appendTo(stream, jsonOf(body));
    for (const evicted of [false, true]) {
      if (evicted) {
        await engine.storage.persist(stream.stored);
        assert.ok(engine.storage.release(stream.stored));
      }
      const stored = await engine.storage.load("s");
      assert.ok(stored !== null);
      const json = new Stream(
        {
          storage: engine.storage,
          clock: engine.clock,
          ttlMode: "sliding",
          retention: KEEP_ALL,
          producers: new LoadedProducers<Stream>(),
          hasRoomForProducer: () => true,
        },
        stored,
        null,
      );
      // {"a":1},\n is 9 bytes, 2,\n and 3,\n are 3 each.
      for (let position = 0; position <= 15; position += 1) {
        const located = await json.locate(at(tokenIn(json.id, position)));
        if ([0, 9, 12, 15].includes(position)) assert.equal(located, position);
        else assert.deepEqual(located, { kind: "refused", code: "invalid-offset", detail: "The offset is inside a message." });
      }
    }
  });
});

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
    const shortened = async (longestBytes: number): Promise<string> => (await stream.read(3, 2, undefined, longestBytes)).bytes.toString();
    assert.deepEqual([await shortened(3), await shortened(4)], ["34", "3456"]);
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

  test("keeps the stream in memory while it gathers", async (t) => {
    const { stream } = await streamOf(t);
    for (const size of [3000, 3000]) await appendTo(stream, commandOf(bytesOf(size)));
    const reading = stream.read(0, 6000);
    assert.equal(stream.idle, false);
    await reading;
    assert.equal(stream.idle, true);
  });
});

describe("live readers", () => {
  test("hear of what became durable together as one advance, in order, and of the end", async (t) => {
    const { engine, stream } = await streamOf(t);
    const heard: (Advance | "end")[] = [];
    const leave = stream.follow(
      (advance) => heard.push(advance),
      () => heard.push("end"),
    );
    assert.equal(stream.idle, false);
    await Promise.all([appendTo(stream, commandOf("ab")), appendTo(stream, commandOf("c"))]);
    await appendTo(stream, commandOf("d", { closes: true }));
    await new Promise<void>((resolve) => void engine.storage.delete(stream.stored, () => resolve()));
    assert.deepEqual(heard, [{ from: 0, ends: [2, 3], to: 3, closed: false }, { from: 3, ends: [4], to: 4, closed: true }, "end"]);
    leave();
  });

  test("see the state of which they hear", async (t) => {
    const { stream } = await streamOf(t);
    const seen: boolean[] = [];
    const leave = stream.follow(
      ({ to, closed }) => seen.push(stream.tail >= to && stream.closed === closed),
      () => assert.fail(),
    );
    await appendTo(stream, commandOf("a"));
    await appendTo(stream, commandOf("", { closes: true }));
    assert.deepEqual(seen, [true, true]);
    leave();
  });

  test("that have all left cost nothing: nobody observes the stream", async (t) => {
    const { stream } = await streamOf(t);
    const heard: string[] = [];
    const [leave, leaveToo] = ["one", "two"].map((who) =>
      stream.follow(
        ({ to }) => heard.push(`${who}: ${to}`),
        () => assert.fail(),
      ),
    );
    await appendTo(stream, commandOf("a"));
    leave?.();
    assert.deepEqual([heard, stream.idle], [["one: 1", "two: 1"], false]);
    assert.notEqual(stream.stored.observer, null);
    leaveToo?.();
    assert.deepEqual([stream.stored.observer, stream.idle], [null, true]);
    stream.advanced(0, 1, false);
    stream.settled();
    stream.deleted();
  });
});

describe("lifetime", () => {
  test("slides with a producer's retry and with a second close", async (t) => {
    const { engine, stream } = await streamOf(t, { ttlSeconds: 10 });
    await appendTo(stream, commandOf("a", producing(0)));
    for (const retry of [commandOf("a", producing(0)), commandOf("", { closes: true }), commandOf("", { closes: true })]) {
      engine.clock.advance(9000);
      assert.equal((await appendTo(stream, retry)).kind, "appended");
      assert.equal(stream.remainingMs(engine.clock.nowMs()), 10_000);
    }
  });

  test("slides with appends and reads, and remains in milliseconds", async (t) => {
    const { engine, stream } = await streamOf(t, { ttlSeconds: 10 });
    const { clock } = engine;
    await appendTo(stream, commandOf("x"));
    assert.equal(stream.remainingMs(clock.nowMs()), 10_000);
    clock.advance(9000);
    await stream.touch();
    clock.advance(9999);
    assert.equal(stream.isExpired(clock.nowMs()), false);
    assert.equal(stream.remainingMs(clock.nowMs()), 1);
    clock.advance(1);
    assert.equal(stream.isExpired(clock.nowMs()), true);
    assert.equal(stream.remainingMs(clock.nowMs()), 0);
  });

  test("counts from creation where it is fixed", async (t) => {
    const { engine, stream } = await streamOf(t, { ttlSeconds: 10 }, "", "fixed");
    engine.clock.advance(9000);
    stream.touch();
    await appendTo(stream, commandOf("x"));
    assert.equal(stream.remainingMs(engine.clock.nowMs()), 1000);
  });

  test("never ends without a TTL or an expiry, and an expiry never moves", async (t) => {
    const { engine, stream } = await streamOf(t);
    assert.equal(stream.remainingMs(engine.clock.nowMs()), null);
    const expiresAtMs = engine.clock.nowMs() + 5000;
    const { engine: other, stream: expiring } = await streamOf(t, { expiresAtMs });
    other.clock.advance(4000);
    expiring.touch();
    assert.equal(expiring.deadlineMs, expiresAtMs);
  });

  test("reads are noted in storage at most every half second", async (t) => {
    const { engine, stream } = await streamOf(t, { ttlSeconds: 10 });
    await appendTo(stream, commandOf("x"));
    const writes = (): number => engine.files.count("writeThen", /./);
    const before = writes();
    for (let step = 0; step < 20; step += 1) {
      engine.clock.advance(100);
      stream.touch();
      await engine.files.idle();
    }
    assert.equal(writes() - before, 4);
  });
});
