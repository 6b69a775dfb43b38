import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import type { Journal } from "../../../../src/storage/file/journal/journal.js";
import { JournalRefusal } from "../../../../src/storage/file/journal/journal-refusal.js";
import { keptLog } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { fillingOf, type JournalFilling } from "../../../helpers/journal-filling.js";
import { ManualClock } from "../../../helpers/manual-clock.js";
import { SkewedClock, SKEWS } from "../../../helpers/skewed-clock.js";
import { diskError } from "../../../helpers/watched-files.js";

describe("a refusal", () => {
  test("lasts until what was lacked is found, or something was written", () => {
    const { log, lines } = keptLog();
    const refusal = new JournalRefusal({ clock: new ManualClock(), log });
    assert.equal(refusal.rejection, null);
    for (const [lacked, rejection] of [
      ["frame-room", "storage-full"],
      ["checkpoint-room", "storage-full"],
      ["file", "overloaded"],
    ] as const) {
      refusal.begin(lacked);
      assert.equal(refusal.rejection, rejection);
      refusal.end(lacked === "file" ? "frame-room" : "file");
      assert.equal(refusal.rejection, rejection, "something else was found");
      refusal.end(lacked);
      assert.equal(refusal.rejection, null);
      refusal.begin(lacked);
      refusal.endAll();
      assert.equal(refusal.rejection, null);
    }
    assert.deepEqual(
      lines.map(({ level }) => level),
      ["error", "info", "error", "info"],
      "of a full disk others tell",
    );
  });

  test("for lack of a file comes two seconds after the first that waits, unless there is one before", () => {
    const clock = new ManualClock();
    const refusal = new JournalRefusal({ clock, log: keptLog().log });
    const told: string[] = [];
    refusal.waitForFile(() => told.push("first"));
    clock.advance(1900);
    refusal.waitForFile(() => told.push("second"));
    assert.equal(told.join(), "");
    clock.advance(100);
    assert.equal(told.join(), "first");
    refusal.waitForFile(() => told.push("third"));
    refusal.endAll();
    clock.advance(5000);
    assert.equal(told.join(), "first");
  });
});

interface Starved {
  readonly journal: Journal;
  readonly stream: FileStream;
  readonly filling: JournalFilling;
  /** What the entries that were refused were told. */
  refused(): readonly string[];
}

/** A journal that has filled its file and can't open another, so that one entry waits. */
async function starved(t: TestContext, rooms: FileRooms): Promise<Starved> {
  const journal = rooms.journal();
  await journal.open();
  t.after(() => journal.close());
  const stream = rooms.stream();
  const filling = await fillingOf(rooms, journal, stream);
  rooms.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".journal") ? diskError("EMFILE") : undefined);
  await filling.untilHeld();
  return { journal, stream, filling, refused: () => rooms.told.filter((line) => line.endsWith(" overloaded")) };
}

describe("a journal that can't open its next file", () => {
  test("refuses what has waited for two seconds, then all, and takes changes again as soon as it can, though nobody asks", async (t) => {
    const rooms = fileRooms();
    const { journal, stream, refused } = await starved(t, rooms);
    for (let tenths = 0; tenths < 19; tenths += 1) {
      rooms.clock.advance(100);
      await rooms.files.idle();
    }
    assert.deepEqual([journal.refusal.rejection, stream.pending, refused().length], [null, 1, 0]);
    rooms.clock.advance(200);
    await rooms.files.idle();
    assert.deepEqual([journal.refusal.rejection, stream.pending, refused().length], ["overloaded", 0, 1]);
    rooms.clock.advance(60_000);
    await rooms.files.idle();
    assert.equal(journal.refusal.rejection, "overloaded");
    rooms.files.gate = null;
    rooms.clock.advance(100);
    await rooms.files.idle();
    assert.equal(journal.refusal.rejection, null);
    rooms.told.length = 0;
    journal.enqueue(rooms.entry(stream, "after"));
    await journal.drain();
    assert.ok(rooms.told.includes("after durable"));
  });

  for (const { name, skewMs } of SKEWS) {
    test(`goes on with what waits when it can, though the timer fires ${name}`, async (t) => {
      const rooms = fileRooms(new SkewedClock(skewMs));
      const { journal, stream } = await starved(t, rooms);
      rooms.files.gate = null;
      rooms.clock.advance(Math.max(0, 100 + skewMs));
      await rooms.files.idle();
      assert.deepEqual([stream.pending, journal.refusal.rejection], [0, null]);
    });
  }

  test("refuses nothing when it can in time", async (t) => {
    const rooms = fileRooms();
    const { filling, refused } = await starved(t, rooms);
    for (let tenths = 0; tenths < 18; tenths += 1) {
      rooms.clock.advance(100);
      await rooms.files.idle();
    }
    rooms.files.gate = null;
    rooms.clock.advance(100);
    assert.deepEqual([await filling.waiting(), refused().length], [0, 0]);
    rooms.clock.advance(10_000);
    await rooms.files.idle();
    assert.equal(refused().length, 0);
  });
});

test("what waits for a checkpoint that can't open files is refused within two seconds, and taken again when a file is freed", async (t) => {
  const rooms = fileRooms();
  const sealed: string[] = [];
  const journal = rooms.journal({ sealed: (file) => void sealed.push(file.path) });
  await journal.open();
  t.after(() => journal.close());
  const stream = rooms.stream();
  const filling = await fillingOf(rooms, journal, stream);
  await filling.untilHeld();
  assert.equal(sealed.length, 3, "no file is made before one is freed");
  rooms.clock.advance(60_000);
  assert.equal(await filling.waiting(), 1, "a slow checkpoint is waited for");
  rooms.state.emit("blocked", diskError("EMFILE"));
  await rooms.files.idle();
  rooms.clock.advance(1999);
  await rooms.files.idle();
  assert.deepEqual([journal.refusal.rejection, stream.pending], [null, 1]);
  rooms.clock.advance(1);
  await rooms.files.idle();
  assert.deepEqual([journal.refusal.rejection, stream.pending], ["overloaded", 0]);
  await journal.retire(sealed[0] ?? "");
  assert.equal(journal.refusal.rejection, null);
  rooms.told.length = 0;
  journal.enqueue(rooms.entry(stream, "after"));
  await journal.drain();
  assert.ok(rooms.told.includes("after durable"));
});
