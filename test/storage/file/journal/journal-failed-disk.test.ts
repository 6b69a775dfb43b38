import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { bytesOf, recordOf } from "../../../helpers/engine.js";
import { fileRooms } from "../../../helpers/file-rooms.js";
import { fill, journalContent, openJournal } from "../../../helpers/open-journal.js";
import { Barrier, diskError, JOURNAL } from "../../../helpers/watched-files.js";

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

  test("in the first frame of a file is no reason to leave that before it open", async () => {
    const rooms = fileRooms();
    const journal = rooms.journal();
    await journal.open();
    rooms.files.gate = ({ kind, path }) => (kind === "writeThen" && path.endsWith("2.journal") ? diskError("EIO") : undefined);
    await fill(rooms, journal, rooms.stream(), () => rooms.faults.length > 0);
    await journal.close();
    assert.ok(rooms.files.count("open", JOURNAL) >= 4);
    assert.equal(rooms.files.count("close", JOURNAL), rooms.files.count("open", JOURNAL));
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

  for (const [when, stopsIn, fails] of [
    ["the next file fails while a batch is on its way", null, "open"],
    ["the answer to an entry stops it", "first", null],
  ] as const)
    test(`says of each entry what the file has, where ${when} and more waits than the next batch takes`, async (t) => {
      const rooms = fileRooms();
      const journal = await openJournal(t, rooms);
      const stream = rooms.stream();
      const hows: [string, string][] = [];
      const enqueue = (label: string, bytes = 0): void =>
        journal.enqueue(
          rooms.entry(stream, label, {
            change: recordOf(label.padEnd(bytes)),
            settle(how) {
              hows.push([label, how]);
              if (label === stopsIn) journal.stop();
            },
          }),
        );
      const disk = rooms.files.holdJournal();
      const hold = rooms.files.gate;
      rooms.files.gate = (operation) => (operation.kind === fails ? diskError("EIO") : hold?.(operation));
      // With more than half of a file, the next is made.
      enqueue("first", 40_000);
      await rooms.files.idle();
      for (let index = 0; index < 20; index += 1) enqueue(`${index}`);
      disk.open();
      await journal.drain();
      const durable = hows.filter(([, how]) => how === "durable").map(([label]) => label);
      assert.deepEqual(
        durable,
        journalContent(rooms, 1).payloads.map((payload) => payload.trim()),
      );
      assert.deepEqual(
        hows.slice(durable.length).map(([, how]) => how),
        Array.from({ length: 21 - durable.length }, () => "storage-unavailable"),
      );
    });

  for (const how of ["storage-full", "storage-unavailable"])
    test(`ends it also behind a batch that finds no room, whose entries are ${how}`, async (t) => {
      const rooms = fileRooms();
      const journal = await openJournal(t, rooms);
      const stream = rooms.stream();
      const disk = new Barrier();
      rooms.files.gate = ({ kind }) => {
        if (kind === "open") return diskError("EIO");
        if (kind === "writeThen") return disk.opened.then(() => Promise.reject(diskError("ENOSPC")));
        // Whether the frame is there can't be found out.
        return kind === "read" && how !== "storage-full" ? diskError("ENOSPC") : undefined;
      };
      journal.enqueue(rooms.entry(stream, "first", { change: recordOf("x".repeat(40_000)) }));
      await rooms.files.idle();
      disk.open();
      await rooms.files.idle();
      assert.equal(rooms.told[0], `first ${how}`);
      assert.equal(rooms.faults.length, 1);
      rooms.files.gate = null;
      journal.enqueue(rooms.entry(stream, "late"));
      await journal.drain();
      assert.equal(rooms.told.at(-1), "late storage-unavailable");
    });
});
