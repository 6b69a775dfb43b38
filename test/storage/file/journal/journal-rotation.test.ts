import assert from "node:assert/strict";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import type { Journal } from "../../../../src/storage/file/journal/journal.js";
import { bytesOf, recordOf, SMALL } from "../../../helpers/engine.js";
import { fileRooms, type FileRooms } from "../../../helpers/file-rooms.js";
import { fill, journalContent, journalWithoutFreeFiles, openJournal, pour } from "../../../helpers/open-journal.js";
import { fillingOf } from "../../../helpers/journal-filling.js";
import { Barrier, diskError, JOURNAL } from "../../../helpers/watched-files.js";

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
    assert.equal(journalContent(rooms, 2).batches[0], (journalContent(rooms, 1).batches.at(-1) ?? 0) + 1);
  });

  test("appends wait when too many files wait for their checkpoint, and go on when one is retired", async (t) => {
    const rooms = fileRooms();
    const sealed: string[] = [];
    const journal = await openJournal(t, rooms, { sealed: (file) => void sealed.push(file.path) });
    const stream = rooms.stream();
    await fill(rooms, journal, stream, () => sealed.length === 3);
    const ends = await pour(rooms, journal, stream, 20);
    assert.ok(ends.settled < 20, `${ends.settled} of 20 settled`);
    assert.ok(readdirSync(rooms.layout.journal).length <= 5);
    await journal.retire(sealed[0] ?? "");
    await rooms.files.idle();
    assert.equal(ends.settled, 20);
  });

  test("no file grows longer than it may, however much comes at once", async (t) => {
    const rooms = fileRooms();
    const sealed: string[] = [];
    const journal = await openJournal(t, rooms, { sealed: (file) => void sealed.push(file.path) });
    const stream = rooms.stream();
    for (let index = 0; index < 40; index += 1)
      journal.enqueue(rooms.entry(stream, `${index}`, { change: recordOf(bytesOf(3000, index)) }));
    await journal.drain();
    await rooms.files.idle();
    assert.equal(sealed.length, 2);
    for (const name of readdirSync(rooms.layout.journal))
      assert.equal(statSync(join(rooms.layout.journal, name)).size, SMALL.journalBytes, name);
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
      journalContent(rooms, Math.max(...names().map((name) => parseInt(name, 10)))).payloads.every((payload) => payload.length === 3000),
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
    assert.deepEqual(journalContent(rooms, 1), { batches: [1, 2], payloads: ["before"] });
    assert.deepEqual(journalContent(rooms, 2), { batches: [3, 4], payloads: ["after"] });
  });

  test("leaves no file open where the next one has no room for its empty frame", async () => {
    const rooms = fileRooms();
    const journal = rooms.journal();
    await journal.open();
    journal.enqueue(rooms.entry(rooms.stream(), "before"));
    await journal.drain();
    let writes = 0;
    rooms.files.gate = ({ kind, path }) =>
      // The zeros are written first.
      kind === "write" && path.endsWith("2.journal") && (writes += 1) === 2 ? diskError("ENOSPC") : undefined;
    await assert.rejects(journal.roll(), { code: "ENOSPC" });
    await journal.close();
    assert.equal(rooms.files.count("open", JOURNAL), 4);
    assert.equal(rooms.files.count("close", JOURNAL), 4);
  });

  test("before it was opened there is nothing to seal", async () => {
    const rooms = fileRooms();
    const journal = rooms.journal();
    assert.equal(await journal.roll(), null);
    await journal.close();
  });
});
