import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { bytesOf, recordOf } from "../../../helpers/engine.js";
import { fileRooms } from "../../../helpers/file-rooms.js";
import { fill, journalContent, openJournal } from "../../../helpers/open-journal.js";
import { diskError } from "../../../helpers/watched-files.js";

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
    assert.deepEqual(journalContent(rooms, 1), { batches: [1, 2], payloads: ["a", "b", "c"] });
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
    assert.deepEqual(journalContent(rooms, 1).batches, [1, 2, 3, 4, 5]);
    assert.equal(rooms.told.filter((line) => line === "batch").length, 4);
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
  assert.deepEqual(journalContent(rooms, 2).batches, [3]);
  assert.ok(rooms.told.includes("sealed 1"));
  assert.equal(readdirSync(rooms.layout.journal).length, 2);
});
