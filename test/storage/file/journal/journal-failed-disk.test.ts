import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { bytesOf, recordOf } from "../../../helpers/engine.js";
import { fileRooms } from "../../../helpers/file-rooms.js";
import { openJournal } from "../../../helpers/open-journal.js";
import { diskError } from "../../../helpers/watched-files.js";

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
