import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { RecordKind } from "../../../../src/storage/file/format/record.js";
import { bytesOf, recordOf, rollAt } from "../../../helpers/engine.js";
import { fileRooms } from "../../../helpers/file-rooms.js";
import { fillUntilOneWaits, journalContent, journalWithoutFreeFiles, openJournal } from "../../../helpers/open-journal.js";
import { SkewedClock, SKEWS } from "../../../helpers/skewed-clock.js";
import { Barrier, diskError } from "../../../helpers/watched-files.js";

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
    assert.deepEqual(journalContent(rooms, 1), { batches: [1, 2], payloads: ["d"] });
  });

  test("fails no deletion and no trim beside what it fails, or behind: they make room", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    const [one, two, three] = [rooms.stream("one"), rooms.stream("two"), rooms.stream("three")];
    const disk = new Barrier();
    rooms.files.gate = ({ kind }) => (kind === "writeThen" ? disk.opened.then(() => Promise.reject(diskError("ENOSPC"))) : undefined);
    journal.enqueue(rooms.entry(one, "a"));
    journal.enqueue(rooms.entry(one, "trim", { kind: RecordKind.trim, change: recordOf("") }));
    await rooms.files.idle();
    journal.enqueue(rooms.entry(two, "b"));
    journal.enqueue(rooms.entry(two, "delete", { kind: RecordKind.delete, change: recordOf("") }));
    journal.enqueue(rooms.entry(three, "keep", { kind: RecordKind.softDelete, change: recordOf("") }));
    journal.enqueue(rooms.entry(three, "c"));
    rooms.files.gate = ({ kind }) => (kind === "read" ? (rooms.told.push("takes back"), undefined) : undefined);
    disk.open();
    await journal.drain();
    assert.deepEqual(
      rooms.told.filter((line) => !line.startsWith("apply")),
      [
        ...["takes back", "a storage-full", "b storage-full", "c storage-full", "batch"],
        ...["trim durable", "delete durable", "keep durable", "batch"],
      ],
    );
    assert.deepEqual([one.pending, two.pending, three.pending, journal.queuedBytes], [0, 0, 0, 0]);
  });

  test("fails a deletion that finds no room without an append either", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    const [one, two] = [rooms.stream("one"), rooms.stream("two")];
    rooms.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    journal.enqueue(rooms.entry(one, "a"));
    journal.enqueue(rooms.entry(two, "delete", { kind: RecordKind.delete, change: recordOf("") }));
    await journal.drain();
    assert.deepEqual(rooms.told, ["a storage-full", "batch", "delete storage-full", "batch"]);
    assert.equal(two.pending, 0);
  });

  test("fails the deletion of a stream whose creation it fails, or that was decided on what failed before", async (t) => {
    const rooms = fileRooms();
    const journal = await openJournal(t, rooms);
    const [one, two] = [rooms.stream("one"), rooms.stream("two")];
    rooms.files.gate = ({ kind }) => (kind === "writeThen" ? diskError("ENOSPC") : undefined);
    journal.enqueue(rooms.entry(one, "create", { kind: RecordKind.create }));
    journal.enqueue(rooms.entry(one, "delete", { kind: RecordKind.delete, change: recordOf("") }));
    journal.enqueue(rooms.entry(two, "outdated", { kind: RecordKind.delete, change: recordOf(""), generation: -1 }));
    await journal.drain();
    assert.deepEqual(rooms.told, ["create storage-full", "delete storage-full", "outdated storage-full", "batch"]);
  });

  test("that lets no checkpoint free a file takes a deletion that waits for one beside appends", async (t) => {
    const rooms = fileRooms();
    const { journal, stream } = await journalWithoutFreeFiles(t, rooms);
    await fillUntilOneWaits(rooms, journal, stream);
    journal.enqueue(rooms.entry(rooms.stream("other"), "delete", { kind: RecordKind.delete, change: recordOf("") }));
    rooms.told.length = 0;
    rooms.state.emit("blocked", diskError("ENOSPC"));
    await journal.drain();
    const ends = rooms.told.filter((line) => / (durable|storage-full)$/.test(line));
    assert.deepEqual(ends, [" storage-full", "delete durable"]);
    assert.equal(journal.refusal.rejection, "storage-full");
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
    journal.enqueue(rooms.entry(stream, "first", { change: recordOf(bytesOf(51_000)) }));
    await rooms.files.idle();
    journal.enqueue(rooms.entry(stream, "behind"));
    assert.equal(journal.refusal.rejection, null);
    disk.open();
    await journal.drain();
    const ends = rooms.told.filter((line) => / (durable|storage-full)$/.test(line));
    assert.deepEqual(ends, ["first durable", "behind storage-full"]);
    assert.equal(journal.refusal.rejection, "storage-full");
    rooms.files.gate = null;
  });
});
