import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { append, bytesOf, created, openFor, SMALL, startCreate, type Engine } from "../../helpers/engine.js";
import { Barrier, failing, SEGMENT } from "../../helpers/watched-files.js";

const HANGING = { writable: false, reason: "the disk does not answer", damagedStreams: 0 };
const WRITABLE = { writable: true, reason: null, damagedStreams: 0 };

function linesOf({ log }: Engine): readonly string[] {
  return log.filter(({ message }) => message.startsWith("the disk ")).map(({ level, message }) => `${level} ${message}`);
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
    assert.deepEqual(linesOf(engine), ["error the disk has not answered for 5 s: appends wait until it does"]);
    assert.deepEqual([storage.figures().unansweredSeconds, storage.health()], [5, WRITABLE]);
    clock.advance(5000);
    assert.deepEqual([storage.figures().unansweredSeconds, storage.health()], [10, HANGING]);
    disk.open();
    assert.equal(await outcome, "durable");
    assert.deepEqual([storage.figures().unansweredSeconds, storage.health()], [0, WRITABLE]);
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
});
