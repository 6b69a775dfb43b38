import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Advance } from "../../../src/stream/loaded/live.js";
import { refuseRejected } from "../../../src/stream/rules/outcome.js";
import { appendTo } from "../../helpers/append.js";
import { tokenIn } from "../../helpers/tokens.js";
import { diskError } from "../../helpers/watched-files.js";
import { commandOf, gist, producing, soFar, streamOf } from "../../helpers/streams.js";

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
