import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { append, bytesOf, created, openFor, SMALL, startCreate, type Engine, type Outcome } from "../../helpers/engine.js";
import type { StoredStream } from "../../../src/storage/storage.js";
import { Barrier, failing, JOURNAL, SEGMENT, type Operation } from "../../helpers/watched-files.js";

const HANGING = { writable: false, reason: "the disk does not answer", damagedStreams: 0 };
const WRITABLE = { writable: true, reason: null, damagedStreams: 0 };

function linesOf({ log }: Engine): readonly string[] {
  return log.filter(({ message }) => message.startsWith("the disk ")).map(({ level, message }) => `${level} ${message}`);
}

/** Appends one after the other until one waits. */
async function waiting({ storage, files }: Engine, stream: StoredStream): Promise<{ readonly outcome: Promise<Outcome> }> {
  for (let count = 0; count < 500; count += 1) {
    let isSettled = false;
    const outcome = append(storage, stream, bytesOf(3000, count)).finally(() => (isSettled = true));
    await files.idle();
    if (!isSettled) return { outcome };
  }
  throw new Error("no append waits");
}

/** A hang of 5 seconds is told in the log, and after 10 by the health, until the disk answers. */
async function assertTold(engine: Engine, disk: Pick<Barrier, "open">, outcome: Promise<unknown>): Promise<void> {
  const { storage, clock } = engine;
  assert.deepEqual(linesOf(engine), ["error the disk has not answered for 5 s: appends wait until it does"]);
  assert.deepEqual([storage.figures().unansweredSeconds, storage.health()], [5, WRITABLE]);
  clock.advance(5000);
  assert.deepEqual([storage.figures().unansweredSeconds, storage.health()], [10, HANGING]);
  disk.open();
  assert.equal(await outcome, "durable");
  assert.deepEqual([storage.figures().unansweredSeconds, storage.health()], [0, WRITABLE]);
}

describe("a disk that does not answer", () => {
  test("is told in the log, the figures and the health while it does not, and when it does again", async (t) => {
    const engine = await openFor(t);
    const { storage, files, clock } = engine;
    const disk = files.holdJournal();
    const { outcome } = startCreate(storage, "s");
    await files.idle();
    assert.deepEqual([storage.figures().unansweredSeconds, storage.health()], [0, WRITABLE]);
    clock.advance(6000);
    await assertTold(engine, disk, outcome);
    assert.deepEqual(linesOf(engine).slice(1), ["info the disk answers again", "warn the disk is slow"]);
  });

  test("is told where only large appends wait, once they take longer than their size explains", async (t) => {
    const engine = await openFor(t);
    const { storage, files, clock } = engine;
    const stream = await created(storage, "s");
    const disk = new Barrier();
    files.gate = ({ kind, path }) => (kind === "sync" && SEGMENT.test(path) ? disk.opened : undefined);
    const outcome = append(storage, stream, bytesOf(8 * 1024 * 1024));
    await files.idle();
    clock.advance(12_000);
    assert.deepEqual([storage.figures().unansweredSeconds, storage.health()], [9, WRITABLE]);
    clock.advance(1000);
    assert.deepEqual([storage.figures().unansweredSeconds, storage.health()], [10, HANGING]);
    disk.open();
    assert.equal(await outcome, "durable");
    assert.deepEqual(storage.health(), WRITABLE);
    assert.deepEqual(linesOf(engine), [
      "error the disk has not answered for 5 s: appends wait until it does",
      "info the disk answers again",
    ]);
  });

  test("is told where a large append waits behind what hangs in its stream", async (t) => {
    const engine = await openFor(t);
    const { storage, files, clock } = engine;
    const stream = await created(storage, "s", "some");
    const disk = new Barrier();
    files.gate = () => disk.opened;
    const persisted = storage.persist(stream);
    await files.idle();
    const outcome = append(storage, stream, bytesOf(SMALL.journalBypassBytes));
    clock.advance(11_000);
    assert.deepEqual([storage.figures().unansweredSeconds, storage.health()], [10, HANGING]);
    disk.open();
    assert.equal(await outcome, "durable");
    await persisted;
    assert.deepEqual(storage.health(), WRITABLE);
  });

  test("is not told where a large append fails", async (t) => {
    const engine = await openFor(t);
    const { storage, files, clock } = engine;
    const stream = await created(storage, "s");
    files.gate = failing("ENOSPC", ["write"], SEGMENT);
    assert.equal(await append(storage, stream, bytesOf(SMALL.journalBypassBytes)), "storage-full");
    clock.advance(20_000);
    assert.deepEqual([storage.figures().unansweredSeconds, linesOf(engine).filter((line) => line.includes("answer"))], [0, []]);
  });

  for (const [what, hangs] of [
    ["the sync of the directory with the journal's next file", ({ kind, path }) => kind === "syncDirectory" && path.endsWith("journal")],
    ["the opening of the journal's next file", ({ kind, path }) => kind === "open" && JOURNAL.test(path)],
    ["the sync of a segment, which the checkpoint of a full journal needs", ({ kind, path }) => kind === "sync" && SEGMENT.test(path)],
  ] as const satisfies readonly (readonly [string, (operation: Operation) => boolean])[]) {
    test(`is told where it is ${what}`, async (t) => {
      const engine = await openFor(t);
      const { storage, files, clock } = engine;
      const stream = await created(storage, "s");
      const disk = new Barrier();
      files.gate = (operation) => (hangs(operation) ? disk.opened : undefined);
      const { outcome } = await waiting(engine, stream);
      clock.advance(4750);
      assert.deepEqual([storage.figures().unansweredSeconds, linesOf(engine)], [4, []]);
      clock.advance(500);
      await assertTold(engine, disk, outcome);
      assert.deepEqual(linesOf(engine).slice(1), ["info the disk answers again"]);
    });
  }

  test("is not told of a checkpoint that is slow and goes on, though the journal is full", async (t) => {
    const engine = await openFor(t, { journalBytes: 256 * 1024 });
    const { storage, files, clock } = engine;
    const streams = [];
    for (let count = 0; count < 40; count += 1) streams.push(await created(storage, `s${count}`, "some"));
    const syncs: Barrier[] = [];
    files.gate = ({ kind, path }) => {
      if (kind !== "sync" || !SEGMENT.test(path)) return undefined;
      const sync = new Barrier();
      syncs.push(sync);
      return sync.opened;
    };
    const [first] = streams;
    assert.ok(first !== undefined);
    const { outcome } = await waiting(engine, first);
    let rounds = 0;
    for (; syncs.length > 0; rounds += 1) {
      clock.advance(4000);
      syncs.shift()?.open();
      await files.idle();
    }
    assert.ok(rounds > 10, `${rounds} syncs of 4 s`);
    assert.equal(await outcome, "durable");
    assert.deepEqual([storage.health(), linesOf(engine)], [WRITABLE, []]);
  });
});
