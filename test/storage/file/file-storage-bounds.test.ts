import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  append,
  bytesOf,
  crashAndRecover,
  created,
  loaded,
  openEngine,
  openFor,
  readAll,
  recordOf,
  type Outcome,
} from "../../helpers/engine.js";
import { diskError, failing, SEGMENT } from "../../helpers/watched-files.js";

const MIB = 1024 * 1024;

describe("bounds", () => {
  test("a record that is longer than a frame usually is, and what follows it, are there after kill -9", async (t) => {
    const engine = await openEngine({ journalBytes: 64 * MIB, journalBypassBytes: 8 * MIB, segmentBytes: 1024 * MIB });
    const stream = await created(engine.storage, "s");
    const parts = [bytesOf(5 * MIB), Buffer.from("x")];
    for (const payload of parts) assert.equal(await append(engine.storage, stream, { ...recordOf(""), payload }), "durable");
    await engine.files.idle();
    const again = await crashAndRecover(engine, { journalBytes: 64 * MIB, journalBypassBytes: 8 * MIB, segmentBytes: 1024 * MIB });
    t.after(() => again.storage.close());
    assert.ok((await readAll(again.storage, await loaded(again.storage, "s"))).equals(Buffer.concat(parts)));
  });

  test("more payload than may wait for the disk is refused, and taken again when it is there", async (t) => {
    const { storage, files } = await openFor(t, {
      journalBytes: 256 * 1024 * 1024,
      journalBypassBytes: 64 * 1024 * 1024,
      segmentBytes: 1024 ** 3,
    });
    const stream = await created(storage, "s");
    const disk = files.holdJournal();
    const megabytes = Buffer.alloc(8 * 1024 * 1024);
    const outcomes: Promise<Outcome>[] = [];
    for (let index = 0; index < 8; index += 1) outcomes.push(append(storage, stream, { ...recordOf(""), payload: megabytes }));
    assert.equal(await append(storage, stream, "x"), "overloaded");
    disk.open();
    assert.deepEqual(new Set(await Promise.all(outcomes)), new Set(["durable"]));
    await files.idle();
    assert.equal(await append(storage, stream, "x"), "durable");
  });

  test("more bytes than may wait for their segments are refused, and taken again when they are written", async (t) => {
    const { storage, files } = await openFor(t, {
      journalBytes: 64 * 1024 * 1024,
      journalBypassBytes: 8 * 1024 * 1024,
      segmentBytes: 1024 ** 3,
    });
    const stream = await created(storage, "s");
    files.gate = failing("EMFILE", ["write"], SEGMENT);
    const megabyte = Buffer.alloc(1024 * 1024);
    for (let index = 0; index < 17; index += 1)
      assert.equal(await append(storage, stream, { ...recordOf(""), payload: megabyte }), "durable");
    assert.equal(await append(storage, stream, "x"), "overloaded");
    assert.deepEqual(storage.health(), { writable: false, reason: "no more files can be opened", damagedStreams: 0 });
    files.gate = null;
    await storage.persist(stream);
    assert.equal(storage.health().writable, true);
    assert.equal(await append(storage, stream, "x"), "durable");
  });

  test("where no journal file can be opened changes are refused within two seconds, health says so, and both end by themselves", async (t) => {
    const { storage, files, clock } = await openFor(t, {});
    const stream = await created(storage, "s");
    files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".journal") ? diskError("EMFILE") : undefined);
    let waiting: Promise<Outcome>;
    for (let tail = 0; ; tail += 1000) {
      waiting = append(storage, stream, bytesOf(1000));
      await files.idle();
      if (stream.state.tail === tail) break;
    }
    clock.advance(2000);
    assert.equal(await waiting, "overloaded");
    assert.deepEqual(storage.health(), { writable: false, reason: "no more files can be opened", damagedStreams: 0 });
    assert.equal(await append(storage, stream, "x"), "overloaded");
    await files.idle();
    files.gate = null;
    clock.advance(100);
    await files.idle();
    assert.deepEqual(storage.health(), { writable: true, reason: null, damagedStreams: 0 });
    assert.equal(await append(storage, stream, "x"), "durable");
  });

  test("bytes that find no room in their segments are refused as that, and written when there is some, whether or not anybody appends", async (t) => {
    const { storage, files, clock } = await openFor(t, {
      journalBytes: 64 * 1024 * 1024,
      journalBypassBytes: 8 * 1024 * 1024,
      segmentBytes: 1024 ** 3,
    });
    const stream = await created(storage, "s");
    files.gate = failing("ENOSPC", ["write"], SEGMENT);
    const megabyte = Buffer.alloc(1024 * 1024);
    for (let index = 0; index < 17; index += 1)
      assert.equal(await append(storage, stream, { ...recordOf(""), payload: megabyte }), "durable");
    assert.equal(await append(storage, stream, "x"), "storage-full");
    assert.equal(storage.health().writable, false);
    files.gate = null;
    clock.advance(1000);
    await files.idle();
    assert.equal(storage.health().writable, true);
    assert.equal(await append(storage, stream, "x"), "durable");
  });
});
