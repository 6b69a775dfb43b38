import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { AppendRecord, Settlement, StoredStream } from "../../../src/storage/storage.js";
import { TOUCH_INTERVAL_MS } from "../../../src/stream/rules/expiry.js";
import { SlidingTtl, type SlidingTtlContext } from "../../../src/stream/loaded/sliding-ttl.js";
import { created, openEngine, settled, type Engine } from "../../helpers/engine.js";
import { Barrier, diskError } from "../../helpers/watched-files.js";

const TTL_MS = 2000;

interface TestTtl {
  readonly engine: Engine;
  readonly stored: StoredStream;
  readonly ttl: SlidingTtl;
  /** Milliseconds that are left. */
  readonly leftMs: () => number;
}

/** The TTL of a stream that came from storage, or of one whose creation storage has not settled. */
async function ttlOf(t: TestContext, isNew = false): Promise<TestTtl> {
  const engine = await openEngine();
  t.after(() => engine.storage.close());
  const createdAtMs = engine.clock.nowMs();
  const stored = await created(engine.storage, "s", "", { contentType: "text/plain", ttlSeconds: TTL_MS / 1000, createdAtMs });
  const initial: AppendRecord = { payload: Buffer.alloc(0), messages: 1, closes: false, producer: null, seq: null, atMs: createdAtMs };
  const ttl = new SlidingTtl({ storage: engine.storage, clock: engine.clock }, stored, isNew ? initial : null);
  return { engine, stored, ttl, leftMs: () => ttl.deadlineMs - engine.clock.nowMs() };
}

/** The note failed on a full disk; the next one, when there is room again, does not. */
async function assertNotedOnlyWithRoom(engine: Engine, ttl: SlidingTtl): Promise<void> {
  assert.equal(ttl.isNoted, false);
  engine.files.gate = null;
  engine.clock.advance(1000);
  await engine.files.idle();
  await ttl.touch();
  assert.equal(ttl.isNoted, true);
}

describe("a sliding TTL", () => {
  test("of a stream from storage is longer by what a note may lie behind", async (t) => {
    const { ttl, stored } = await ttlOf(t);
    assert.equal(ttl.deadlineMs, stored.state.touchedAtMs + TOUCH_INTERVAL_MS + TTL_MS);
  });

  test("is longer by that also where another server has noted a use", async (t) => {
    const { engine, ttl, stored } = await ttlOf(t);
    engine.clock.advance(1000);
    const notedAtMs = engine.clock.nowMs();
    assert.equal(engine.storage.touch(stored, notedAtMs), true);
    await settled(engine.storage, stored);
    assert.equal(ttl.deadlineMs, notedAtMs + TOUCH_INTERVAL_MS + TTL_MS);
  });

  test("begins again when a read is answered, however long the disk takes to note it", async (t) => {
    const { engine, ttl, leftMs } = await ttlOf(t);
    engine.clock.advance(TTL_MS - 1);
    const disk = engine.files.holdJournal();
    const answered = ttl.touch();
    engine.clock.advance(3 * TTL_MS);
    assert.equal(leftMs(), TTL_MS, "over before the read was answered");
    disk.open();
    await answered;
    assert.equal(leftMs(), TTL_MS);
    engine.clock.advance(TTL_MS);
    assert.equal(leftMs(), 0);
  });

  for (const how of ["durable", "storage-full"] satisfies Settlement[]) {
    test(`begins again when an append is answered with ${how}`, async (t) => {
      const { engine, ttl, leftMs } = await ttlOf(t);
      engine.clock.advance(1000);
      const atMs = engine.clock.nowMs();
      ttl.begin(atMs);
      ttl.begin(atMs);
      engine.clock.advance(3 * TTL_MS);
      ttl.end(atMs, how);
      engine.clock.advance(1000);
      assert.equal(leftMs(), TTL_MS, "one more is under way");
      ttl.end(atMs, how);
      engine.clock.advance(1);
      assert.equal(leftMs(), TTL_MS - 1);
    });
  }

  test("begins when the creation is answered", async (t) => {
    const { engine, ttl, leftMs } = await ttlOf(t, true);
    const atMs = engine.clock.nowMs();
    engine.clock.advance(3 * TTL_MS);
    assert.equal(leftMs(), TTL_MS);
    ttl.end(atMs, "durable");
    engine.clock.advance(1);
    assert.equal(leftMs(), TTL_MS - 1);
  });
});

describe("the note of a read", () => {
  test("is waited for by each reader that it speaks for, and by none of a later note", async (t) => {
    const { engine, ttl } = await ttlOf(t);
    engine.clock.advance(TOUCH_INTERVAL_MS);
    const slow = engine.files.holdJournal();
    const log: string[] = [];
    const read = (name: string): Promise<number> => Promise.resolve(ttl.touch()).then(() => log.push(name));
    const first = [read("a"), read("b")];
    await engine.files.idle();
    engine.clock.advance(TOUCH_INTERVAL_MS);
    const second = read("c");
    const slower = engine.files.holdJournal();
    slow.open();
    await Promise.all(first);
    const third = read("d");
    await engine.files.idle();
    assert.deepEqual(log, ["a", "b"], "answered before it was noted");
    assert.equal(ttl.isNoted, false);
    slower.open();
    await Promise.all([second, third]);
    assert.deepEqual(log, ["a", "b", "c", "d"]);
    assert.equal(ttl.isNoted, true);
  });

  test("counts as none when it failed, and the next read tries again", async (t) => {
    const { engine, ttl } = await ttlOf(t);
    engine.clock.advance(2 * TOUCH_INTERVAL_MS);
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    await ttl.touch();
    await assertNotedOnlyWithRoom(engine, ttl);
  });

  test("counts as none also where it failed together with one before it", async (t) => {
    const { engine, ttl } = await ttlOf(t);
    const disk = new Barrier();
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? disk.opened.then(() => Promise.reject(diskError("ENOSPC"))) : undefined);
    const reads: unknown[] = [];
    for (let read = 0; read < 3; read += 1) {
      engine.clock.advance(TOUCH_INTERVAL_MS);
      reads.push(ttl.touch());
      await engine.files.idle();
    }
    disk.open();
    await Promise.all(reads);
    await assertNotedOnlyWithRoom(engine, ttl);
  });

  test("is tried again by the next read after it failed, however soon that comes", async (t) => {
    const { engine, stored } = await ttlOf(t);
    let handedIn = 0;
    // A failure that leaves no time in which storage refuses.
    const storage: SlidingTtlContext["storage"] = {
      touch: () => (handedIn += 1) > 0,
      barrier: (_stream, settle) => settle("storage-full"),
    };
    const ttl = new SlidingTtl({ storage, clock: engine.clock }, stored, null);
    engine.clock.advance(TOUCH_INTERVAL_MS);
    await ttl.touch();
    await ttl.touch();
    assert.equal(handedIn, 2);
  });

  test("is made up for where an append was answered late, and is itself no use of the stream", async (t) => {
    const { engine, stored, ttl, leftMs } = await ttlOf(t);
    engine.clock.advance(1000);
    const atMs = engine.clock.nowMs();
    ttl.begin(atMs);
    engine.clock.advance(TOUCH_INTERVAL_MS + 1);
    const notes = (): number => engine.files.count("writeThen", /\.journal$/);
    const before = notes();
    ttl.note();
    ttl.end(atMs, "durable");
    const answeredAtMs = engine.clock.nowMs();
    assert.equal(ttl.isNoted, false, "from disk it would expire early");
    engine.clock.advance(100);
    for (let times = 0; times < 3; times += 1) ttl.note();
    await engine.files.idle();
    assert.equal(ttl.isNoted, true);
    assert.equal(stored.state.touchedAtMs, answeredAtMs);
    assert.equal(leftMs(), TTL_MS - 100);
    ttl.note();
    await engine.files.idle();
    assert.equal(notes() - before, 1, "once, and not while the append was under way");
  });

  test("is spared as long as an append has noted the stream's use", async (t) => {
    const { engine, ttl } = await ttlOf(t);
    engine.clock.advance(1000);
    const atMs = engine.clock.nowMs();
    ttl.begin(atMs);
    ttl.end(atMs, "durable");
    engine.clock.advance(TOUCH_INTERVAL_MS - 1);
    assert.equal(ttl.touch(), undefined);
    assert.equal(ttl.isNoted, true);
    engine.clock.advance(1);
    assert.ok(ttl.touch() instanceof Promise);
    await engine.files.idle();
  });
});
