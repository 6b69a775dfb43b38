import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, test, type TestContext } from "node:test";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import type { Journal } from "../../../../src/storage/file/journal/journal.js";
import { readJournalFile } from "../../../../src/storage/file/journal/journal-reader.js";
import { decodeRecords, RecordKind } from "../../../../src/storage/file/format/record.js";
import { bytesOf, recordOf, rollAt } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { fillingOf } from "../../../helpers/journal-filling.js";
import { SkewedClock, SKEWS } from "../../../helpers/skewed-clock.js";
import { Barrier, diskError } from "../../../helpers/watched-files.js";

const DIRECTORY_ID = Buffer.from("01234567");

async function openJournal(t: TestContext, rooms: FileRooms, more?: Parameters<FileRooms["journal"]>[0]): Promise<Journal> {
  const journal = rooms.journal(more);
  await journal.open();
  t.after(() => journal.close());
  return journal;
}

/** A journal with three sealed files, and none that it could go on in after the next. */
async function journalWithoutFreeFiles(
  t: TestContext,
  rooms: FileRooms,
): Promise<{ journal: Journal; stream: FileStream; sealed: readonly string[] }> {
  const sealed: string[] = [];
  const journal = await openJournal(t, rooms, { sealed: (file) => void sealed.push(file.path) });
  const stream = rooms.stream();
  for (let index = 0; sealed.length < 3; index += 1) {
    journal.enqueue(rooms.entry(stream, `${index}`, { change: recordOf(bytesOf(3000, index)) }));
    await rooms.files.idle();
  }
  return { journal, stream, sealed };
}

/** The payloads and batches of the records in a journal file, in order. */
function contentOf(rooms: FileRooms, sequence: number): { batches: number[]; payloads: string[] } {
  const { frames, damages } = readJournalFile(readFileSync(rooms.layout.journalFile(sequence)), {
    sequence,
    directoryId: DIRECTORY_ID,
    lastBatch: null,
  });
  assert.deepEqual(damages, []);
  const appends = frames.flatMap((frame) => [...decodeRecords(frame)]).filter(({ kind }) => kind === RecordKind.append);
  return { batches: frames.map(({ batch }) => batch), payloads: appends.map(({ change }) => String(change.payload)) };
}

describe("a batch", () => {
  test("is applied and settled in the order of handing in, and then told once", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    const [one, two] = [rooms.stream("one"), rooms.stream("two")];
    for (const [stream, label] of [
      [one, "a"],
      [two, "b"],
      [one, "c"],
    ] as const)
      journal.enqueue(rooms.entry(stream, label));
    assert.deepEqual(rooms.told, [], "nothing settles at once");
    assert.equal(journal.queuedBytes, 3);
    assert.equal(one.pending, 2);
    await journal.drain();
    assert.deepEqual(rooms.told, ["apply a in 2", "a durable", "apply b in 2", "b durable", "apply c in 2", "c durable", "batch"]);
    assert.equal(journal.queuedBytes, 0);
    assert.equal(one.pending, 0);
    assert.deepEqual(contentOf(rooms, 1), { batches: [1, 2], payloads: ["a", "b", "c"] });
  });

  test("of barriers alone settles after the one that is being written", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    const stream = rooms.stream();
    const disk = rooms.files.holdJournal();
    journal.enqueue(rooms.entry(stream, "a"));
    await rooms.files.idle();
    journal.enqueue(rooms.entry(stream, "barrier", { kind: null, change: recordOf("") }));
    disk.open();
    await journal.drain();
    assert.deepEqual(
      rooms.told.filter((line) => line !== "batch"),
      ["apply a in 2", "a durable", "barrier durable"],
    );
  });

  test("of barriers alone costs no write", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    journal.enqueue(rooms.entry(rooms.stream(), "barrier", { kind: null, change: recordOf("") }));
    await journal.drain();
    assert.deepEqual(rooms.told, ["barrier durable", "batch"]);
    assert.equal(rooms.files.count("writeThen", /./), 0);
  });

  test("does not apply what a failure made void before it was written", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    const stream = rooms.stream();
    const outdated = rooms.entry(stream, "outdated");
    stream.unreserve();
    journal.enqueue(outdated);
    journal.enqueue(rooms.entry(stream, "fresh"));
    await journal.drain();
    assert.deepEqual(rooms.told, ["outdated storage-full", "apply fresh in 2", "fresh durable", "batch"]);
  });

  test("that is long takes several frames, each with its number", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms, { fileBytes: 16 * 1024 * 1024 });
    const stream = rooms.stream();
    for (let index = 0; index < 8; index += 1)
      journal.enqueue(rooms.entry(stream, "x", { change: recordOf(bytesOf(400_000, index)), settle: null }));
    await journal.drain();
    assert.deepEqual(contentOf(rooms, 1).batches, [1, 2, 3, 4, 5]);
    assert.equal(rooms.told.filter((line) => line === "batch").length, 4);
  });
});

/** Enqueues batches of one record until `until` holds; returns how many were durable. */
async function fill(rooms: FileRooms, journal: Journal, stream: FileStream, until: () => boolean): Promise<number> {
  let durable = 0;
  for (let index = 0; !until() && index < 500; index += 1) {
    await new Promise<void>((resolve) =>
      journal.enqueue(
        rooms.entry(stream, "", {
          change: recordOf(bytesOf(3000, index)),
          settle: (how) => (how === "durable" && (durable += 1), resolve()),
        }),
      ),
    );
  }
  return durable;
}

/** Enqueues entries one after the other until one waits for the next file. */
async function fillUntilOneWaits(rooms: FileRooms, journal: Journal, stream: FileStream): Promise<void> {
  for (let index = 0; index < 80 && stream.pending === 0; index += 1) {
    journal.enqueue(rooms.entry(stream, "", { change: recordOf(bytesOf(3000)) }));
    await rooms.files.idle();
  }
  assert.ok(stream.pending > 0, "the last waits for a file");
}

/** Enqueues batches of one record without waiting for their end; `settled` counts. */
async function pour(rooms: FileRooms, journal: Journal, stream: FileStream, count: number): Promise<{ settled: number }> {
  const ends = { settled: 0 };
  for (let index = 0; index < count; index += 1) {
    journal.enqueue(rooms.entry(stream, "", { change: recordOf(bytesOf(3000, index)), settle: () => (ends.settled += 1) }));
    await rooms.files.idle();
  }
  return ends;
}

describe("rotation", () => {
  test("a full file is sealed once the next holds a frame, and the batches go on", async (t) => {
    const rooms = fileRooms();
    const sealed: ReadonlySet<FileStream>[] = [];
    const journal = await openJournal(t, rooms, { sealed: (file) => void sealed.push(file.streams) });
    const stream = rooms.stream();
    await fill(rooms, journal, stream, () => sealed.length === 2);
    assert.deepEqual(
      sealed.map((streams) => [...streams]),
      [[stream], [stream]],
    );
    assert.equal(contentOf(rooms, 2).batches[0], (contentOf(rooms, 1).batches.at(-1) ?? 0) + 1);
  });

  test("appends wait when too many files wait for their checkpoint, and go on when one is retired", async (t) => {
    const rooms = fileRooms();
    const sealed: string[] = [];
    const journal = await openJournal(t, rooms, { sealed: (file) => void sealed.push(file.path) });
    const stream = rooms.stream();
    await fill(rooms, journal, stream, () => sealed.length === 3);
    const ends = await pour(rooms, journal, stream, 40);
    assert.ok(ends.settled < 40, `${ends.settled} of 40 settled`);
    assert.ok(readdirSync(rooms.layout.journal).length <= 5);
    await journal.retire(sealed[0] ?? "");
    await rooms.files.idle();
    assert.equal(ends.settled, 40);
  });

  test("the last file that there may be fills no faster than the checkpoint goes on", async (t) => {
    const rooms = fileRooms();
    const { journal, stream, sealed } = await journalWithoutFreeFiles(t, rooms);
    const filling = await fillingOf(rooms, journal, stream);
    const settled: number[] = [];
    for (const done of [0, 0.25, 0.5, 0.75]) {
      journal.checkpointAt(done);
      settled.push(await filling.untilHeld());
    }
    const [first = NaN, ...later] = settled;
    assert.equal(first, 1, "what began before it knew how far it would come");
    assert.ok(
      later.every((count) => count > 1 && count < later.reduce((sum, one) => sum + one) / 2),
      `${settled.join()}: as many at each step`,
    );
    await journal.retire(sealed[0] ?? "");
    assert.equal(await filling.waiting(), 0);
  });

  test("what a killed process left more of than there may be is shared among the checkpoints that it takes", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms, { firstSequence: 100, olderFiles: 4 });
    const oldest = rooms.layout.journalFile(1);
    writeFileSync(oldest, "records");
    const filling = await fillingOf(rooms, journal, rooms.stream());
    const runs: number[] = [];
    for (const end of [() => journal.retire(oldest), () => undefined]) {
      let settled = 0;
      for (const done of [0, 0.25, 0.5, 0.75, 1]) {
        journal.checkpointAt(done);
        settled += await filling.untilHeld();
      }
      runs.push(settled);
      await end();
      // As the checkpointer goes from one file to the next.
      journal.checkpointAt(null);
      journal.checkpointAt(0);
    }
    const [first = NaN, second = NaN] = runs;
    assert.ok(Math.abs(first - second) < first / 4, `${runs.join()}: as many in each`);
  });

  test("what has nothing to write does not wait for the checkpoint", async (t) => {
    const rooms = fileRooms();
    const { journal, stream } = await journalWithoutFreeFiles(t, rooms);
    journal.checkpointAt(0);
    const disk = rooms.files.holdJournal();
    journal.enqueue(rooms.entry(stream, "first"));
    await rooms.files.idle();
    journal.enqueue(rooms.entry(stream, "barrier", { kind: null, change: recordOf("") }));
    rooms.files.gate = null;
    disk.open();
    await rooms.files.idle();
    assert.deepEqual(rooms.told.slice(-4), ["first durable", "batch", "barrier durable", "batch"]);
  });

  for (const [what, end] of [
    ["has ended", (_rooms: FileRooms, journal: Journal) => journal.checkpointAt(null)],
    ["finds the disk full", ({ state }: FileRooms) => state.emit("blocked", diskError("ENOSPC"))],
  ] as const) {
    test(`nobody waits for the progress of a checkpoint that ${what}`, async (t) => {
      const rooms = fileRooms();
      const { journal, stream } = await journalWithoutFreeFiles(t, rooms);
      journal.checkpointAt(0);
      for (const label of ["first", "second"]) {
        journal.enqueue(rooms.entry(stream, label));
        await rooms.files.idle();
      }
      assert.deepEqual(rooms.told.slice(-2), ["first durable", "batch"], "the second waits");
      end(rooms, journal);
      await rooms.files.idle();
      assert.deepEqual(rooms.told.slice(-2), ["second durable", "batch"]);
    });
  }

  test("a retired file is out of recovery's sight, and used again; a second one is removed", async (t) => {
    const rooms = fileRooms();
    const sealed: string[] = [];
    const journal = await openJournal(t, rooms, { sealed: (file) => void sealed.push(file.path) });
    const stream = rooms.stream();
    await fill(rooms, journal, stream, () => sealed.length === 3);
    const names = (): string[] => readdirSync(rooms.layout.journal).sort();
    for (const path of sealed) await journal.retire(path);
    await rooms.files.idle();
    assert.ok(!names().some((name) => /000[123]\.journal$/.test(name)), names().join(" "));
    await fill(rooms, journal, stream, () => rooms.files.count("rename", /\.spare$/) > 0);
    await rooms.files.idle();
    assert.ok(!names().some((name) => name.endsWith(".spare")), names().join(" "));
    assert.deepEqual(
      contentOf(rooms, Math.max(...names().map((name) => parseInt(name, 10)))).payloads.every((payload) => payload.length === 3000),
      true,
    );
  });

  test("payload that went past the journal makes a file full sooner", async (t) => {
    const rooms = fileRooms();
    let sealed = 0;
    const journal = await openJournal(t, rooms, { sealed: () => (sealed += 1) });
    const stream = rooms.stream();
    for (let index = 0; index < 4; index += 1) {
      await new Promise<void>((resolve) =>
        journal.enqueue(rooms.entry(stream, "", { bypassed: { length: 512 * 1024, crc: 0 }, settle: () => resolve() })),
      );
      await rooms.files.idle();
    }
    assert.ok(sealed >= 1);
  });

  test("zeros are written ahead of the frames, and frames wait for them", async (t) => {
    const rooms = fileRooms();
    const zeros = new Barrier();
    const journal = await openJournal(t, rooms, { fileBytes: 24 * 1024 * 1024 });
    const stream = rooms.stream();
    rooms.files.gate = ({ kind, bytes }) => (kind === "write" && bytes === 2 * 1024 * 1024 ? zeros.opened : undefined);
    let settled = 0;
    for (let index = 0; index < 20; index += 1)
      journal.enqueue(rooms.entry(stream, "", { change: recordOf(Buffer.alloc(500_000)), settle: () => (settled += 1) }));
    await rooms.files.idle();
    assert.ok(settled > 0 && settled < 20, `${settled} of 20 settled`);
    zeros.open();
    await journal.drain();
    assert.equal(settled, 20);
  });

  test("no room for the zeros is a full disk, and trouble with them is a fault", async (t) => {
    for (const [code, how] of [
      ["ENOSPC", "storage-full"],
      ["EIO", "storage-unavailable"],
    ] as const) {
      const rooms = fileRooms();
      const journal = await openJournal(t, rooms, { fileBytes: 24 * 1024 * 1024 });
      const stream = rooms.stream();
      rooms.files.gate = ({ kind, bytes }) => (kind === "write" && bytes === 2 * 1024 * 1024 ? diskError(code) : undefined);
      const hows = await Promise.all(
        Array.from(
          { length: 20 },
          () =>
            new Promise<string>((resolve) =>
              journal.enqueue(rooms.entry(stream, "", { change: recordOf(Buffer.alloc(500_000)), settle: resolve })),
            ),
        ),
      );
      assert.equal(hows.at(-1), how);
      assert.equal(rooms.faults.length, code === "EIO" ? 1 : 0);
      rooms.files.gate = null;
    }
  });
});

describe("rolling on purpose", () => {
  test("gives the file with all that was handed in before, and goes on in the next", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    const stream = rooms.stream();
    journal.enqueue(rooms.entry(stream, "before"));
    const sealed = await journal.roll();
    t.after(() => sealed?.close());
    journal.enqueue(rooms.entry(stream, "after"));
    await journal.drain();
    assert.equal(sealed?.sequence, 1);
    assert.deepEqual(contentOf(rooms, 1), { batches: [1, 2], payloads: ["before"] });
    assert.deepEqual(contentOf(rooms, 2), { batches: [3, 4], payloads: ["after"] });
  });

  test("before it was opened there is nothing to seal", async () => {
    const rooms = fileRooms();
    const journal = rooms.journal();
    assert.equal(await journal.roll(), null);
    await journal.close();
  });
});

describe("a full disk", () => {
  test("fails what is written and what waits behind it, in order; then the place and the number are used again", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    const [one, two] = [rooms.stream("one"), rooms.stream("two")];
    const disk = new Barrier();
    rooms.files.gate = ({ kind }) => (kind === "writeThen" ? disk.opened.then(() => Promise.reject(diskError("ENOSPC"))) : undefined);
    one.reserve(5, 0, rollAt(100));
    journal.enqueue(rooms.entry(one, "a"));
    await rooms.files.idle();
    journal.enqueue(rooms.entry(two, "b"));
    journal.enqueue(rooms.entry(one, "c"));
    disk.open();
    await journal.drain();
    assert.deepEqual(rooms.told, ["a storage-full", "b storage-full", "c storage-full", "batch"]);
    assert.equal(one.reservedTail, 0, "what was reserved is given back");
    assert.equal(journal.refusal.rejection, "storage-full");
    assert.equal(journal.queuedBytes, 0);
    rooms.files.gate = ({ kind }) => (kind === "write" ? diskError("ENOSPC") : undefined);
    rooms.clock.advance(1000);
    await rooms.files.idle();
    assert.equal(journal.refusal.rejection, "storage-full", "a frame of its size would not find room");
    rooms.files.gate = null;
    rooms.clock.advance(1000);
    await rooms.files.idle();
    assert.equal(journal.refusal.rejection, null, "before anything is appended");
    journal.enqueue(rooms.entry(one, "d"));
    await journal.drain();
    assert.equal(journal.refusal.rejection, null);
    assert.deepEqual(contentOf(rooms, 1), { batches: [1, 2], payloads: ["d"] });
  });

  for (const { name, skewMs } of SKEWS) {
    test(`that takes no frame back is asked again whenever the timer fires, ${name}`, async (t) => {
      const rooms = fileRooms(new SkewedClock(skewMs));
      const journal = await openJournal(t, rooms);
      const stream = rooms.stream();
      rooms.files.gate = ({ kind }) => (kind === "writeThen" || kind === "read" ? diskError("ENOSPC") : undefined);
      journal.enqueue(rooms.entry(stream, "a"));
      for (let tries = 1; tries <= 3; tries += 1) {
        await rooms.files.idle();
        assert.deepEqual(rooms.told, [], "nobody is told before it is known what the disk has");
        rooms.clock.advance(Math.max(0, 1000 + skewMs));
      }
      await rooms.files.idle();
      rooms.files.gate = null;
      rooms.clock.advance(Math.max(0, 1000 + skewMs));
      await journal.drain();
      assert.deepEqual(rooms.told, ["a storage-full", "batch"]);
    });
  }

  test("that lets no checkpoint free a file refuses what waits for one, until one is freed", async (t) => {
    const rooms = fileRooms();
    const { journal, stream, sealed } = await journalWithoutFreeFiles(t, rooms);
    rooms.told.length = 0;
    await fillUntilOneWaits(rooms, journal, stream);
    assert.equal(journal.refusal.rejection, null);
    rooms.state.emit("blocked", diskError("ENOSPC"));
    await journal.drain();
    assert.equal(rooms.told.at(-2), " storage-full");
    assert.equal(journal.refusal.rejection, "storage-full");
    rooms.state.emit("space");
    assert.equal(journal.refusal.rejection, "storage-full", "room is not a free file");
    await journal.retire(sealed[0] ?? "");
    assert.equal(journal.refusal.rejection, null);
    rooms.told.length = 0;
    journal.enqueue(rooms.entry(stream, "after"));
    await journal.drain();
    assert.deepEqual(
      rooms.told.filter((line) => line.startsWith("after")),
      ["after durable"],
    );
  });

  test("of an engine that ends refuses what waits for a file, also when the checkpoint under way frees one too few", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms, { firstSequence: 100, olderFiles: 5 });
    const stream = rooms.stream();
    await fillUntilOneWaits(rooms, journal, stream);
    writeFileSync(rooms.layout.journalFile(1), "checkpointed");
    rooms.state.stop();
    await journal.retire(rooms.layout.journalFile(1));
    await rooms.files.idle();
    assert.equal(stream.pending, 0, "it waits for ever");
    assert.equal(rooms.told.at(-2), " storage-full");
  });

  test("of an engine that ends refuses what waits for a file that can't be opened now", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    const stream = rooms.stream();
    rooms.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".journal") ? diskError("EMFILE") : undefined);
    await fillUntilOneWaits(rooms, journal, stream);
    rooms.state.stop();
    await rooms.files.idle();
    assert.equal(stream.pending, 0, "it waits for ever");
    rooms.files.gate = null;
  });

  test("of the checkpoint's, found while the last frame is on its way: that frame settles first", async (t) => {
    const rooms = fileRooms();
    const { journal, stream } = await journalWithoutFreeFiles(t, rooms);
    rooms.state.emit("blocked", diskError("ENOSPC"));
    for (let index = 0; index < 80 && journal.refusal.rejection === null; index += 1) {
      const disk = rooms.files.holdJournal();
      rooms.told.length = 0;
      journal.enqueue(rooms.entry(stream, "ahead", { change: recordOf(bytesOf(3000)) }));
      await rooms.files.idle();
      const isOnItsWay = rooms.told.length === 0;
      journal.enqueue(rooms.entry(stream, "behind", { change: recordOf(bytesOf(3000)) }));
      disk.open();
      rooms.files.gate = null;
      await journal.drain();
      if (isOnItsWay) assert.ok(rooms.told.includes("ahead durable"), rooms.told.join("; "));
    }
    assert.equal(journal.refusal.rejection, "storage-full");
  });

  test("found while a batch is on its way, that batch settles first", async (t) => {
    const rooms = fileRooms();
    const sealed: string[] = [];
    const journal = await openJournal(t, rooms, { sealed: (file) => void sealed.push(file.path) });
    const stream = rooms.stream();
    const disk = new Barrier();
    rooms.files.gate = ({ kind }) => (kind === "write" ? diskError("ENOSPC") : kind === "writeThen" ? disk.opened : undefined);
    for (let index = 0; index < 17; index += 1)
      journal.enqueue(rooms.entry(stream, `${index}`, { change: recordOf(bytesOf(3000, index)) }));
    await rooms.files.idle();
    journal.enqueue(rooms.entry(stream, "behind"));
    assert.equal(journal.refusal.rejection, null);
    disk.open();
    await journal.drain();
    const ends = rooms.told.filter((line) => / (durable|storage-full)$/.test(line));
    assert.deepEqual(
      ends.slice(0, 17),
      Array.from({ length: 17 }, (_, index) => `${index} durable`),
    );
    assert.equal(ends[17], "behind storage-full");
    assert.equal(journal.refusal.rejection, "storage-full");
    rooms.files.gate = null;
  });
});

describe("a disk that fails", () => {
  test("is told once, and everything handed in later fails", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    rooms.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("EIO") : undefined);
    const stream = rooms.stream();
    journal.enqueue(rooms.entry(stream, "a"));
    journal.enqueue(rooms.entry(stream, "b"));
    await journal.drain();
    rooms.files.gate = null;
    const late = new Promise<string>((resolve) => journal.enqueue(rooms.entry(stream, "c", { settle: resolve })));
    assert.equal(await late, "storage-unavailable");
    assert.deepEqual(rooms.told, ["a storage-unavailable", "b storage-unavailable", "batch"]);
    assert.equal(rooms.faults.length, 1);
    assert.equal(stream.pending, 0);
  });

  test("stops what waits, while what is on its way settles as it ends", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    const stream = rooms.stream();
    const disk = rooms.files.holdJournal();
    journal.enqueue(rooms.entry(stream, "written"));
    await rooms.files.idle();
    journal.enqueue(rooms.entry(stream, "waiting"));
    journal.stop();
    journal.enqueue(rooms.entry(stream, "late"));
    await rooms.files.idle();
    assert.deepEqual(rooms.told, [], "what comes later does not settle before it either");
    disk.open();
    await journal.drain();
    assert.deepEqual(
      rooms.told.filter((line) => line !== "batch"),
      ["apply written in 2", "written durable", "waiting storage-unavailable", "late storage-unavailable"],
    );
    journal.enqueue(rooms.entry(stream, "last"));
    await journal.drain();
    assert.equal(rooms.told.at(-1), "last storage-unavailable");
  });

  test("stops what waits for a file at once", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms, { olderFiles: 3 });
    const stream = rooms.stream();
    let durable = 0;
    let failed = 0;
    for (let index = 0; index < 60; index += 1)
      journal.enqueue(
        rooms.entry(stream, "", { change: recordOf(bytesOf(3000)), settle: (how) => (how === "durable" ? (durable += 1) : (failed += 1)) }),
      );
    await rooms.files.idle();
    for (let index = 0; index < 60; index += 1)
      journal.enqueue(
        rooms.entry(stream, "", { change: recordOf(bytesOf(3000)), settle: (how) => (how === "durable" ? (durable += 1) : (failed += 1)) }),
      );
    await rooms.files.idle();
    assert.ok(durable < 120);
    journal.stop();
    assert.equal(durable + failed, 120);
  });
});

test("a stream that memory lets go of leaves the file's streams", async (t) => {
  const rooms = fileRooms();
  const journal = await openJournal(t, rooms);
  const stream = rooms.stream();
  journal.enqueue(rooms.entry(stream, "a"));
  await journal.drain();
  journal.forget(stream);
  const sealed = await journal.roll();
  t.after(() => sealed?.close());
  assert.equal(sealed?.streams.size, 0);
});

test("the end leaves only the file being written", async () => {
  const rooms = fileRooms();
  const sealed: string[] = [];
  const journal = rooms.journal({ sealed: (file) => void sealed.push(file.path) });
  await journal.open();
  await fill(rooms, journal, rooms.stream(), () => sealed.length === 2);
  for (const path of sealed) await journal.retire(path);
  await journal.close();
  assert.equal(readdirSync(rooms.layout.journal).length, 1);
});

test("a spare file of an earlier run is removed at the start", async (t) => {
  const rooms = fileRooms();
  writeFileSync(`${rooms.layout.journalFile(9)}.spare`, "");
  await openJournal(t, rooms);
  assert.deepEqual(readdirSync(rooms.layout.journal), ["0000000000000001.journal"]);
});

test("a file is not left before it has a frame", async (t) => {
  const rooms = fileRooms();
  const journal = await openJournal(t, rooms);
  const stream = rooms.stream();
  journal.enqueue(rooms.entry(stream, "x".repeat(50_000)));
  await journal.drain();
  await rooms.files.idle();
  // The first file is full, and there is no room for what comes now in the second.
  rooms.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
  journal.enqueue(rooms.entry(stream, "lost"));
  await journal.drain();
  rooms.files.gate = null;
  assert.equal(await journal.roll(), null);
  assert.deepEqual(contentOf(rooms, 2).batches, [3]);
  assert.ok(rooms.told.includes("sealed 1"));
  assert.equal(readdirSync(rooms.layout.journal).length, 2);
});
