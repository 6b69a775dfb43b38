import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type StoredStream } from "../../../src/storage/storage.js";
import {
  append,
  bytesOf,
  created,
  loaded,
  openEngine,
  openFor,
  readAll,
  remove,
  settled,
  startCreate,
  type Engine,
  type Outcome,
} from "../../helpers/engine.js";
import { Barrier, diskError, failing, JOURNAL, SEGMENT } from "../../helpers/watched-files.js";

describe("a disk that fails", () => {
  async function assertFaulted(engine: Engine, stream: StoredStream): Promise<void> {
    assert.equal(engine.faults.length, 1, "told once");
    assert.deepEqual(engine.storage.health(), { writable: false, reason: "the disk failed", damagedStreams: 0 });
    assert.equal(await append(engine.storage, stream, "x"), "storage-unavailable");
    assert.equal(await startCreate(engine.storage, "new").outcome, "storage-unavailable");
    assert.equal(await remove(engine.storage, stream), "storage-unavailable");
    assert.equal(await settled(engine.storage, stream), "storage-unavailable");
    engine.storage.touch(stream, 1);
  }

  test("a failed journal write is final: everything is refused, also when the disk is well again", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    engine.files.gate = failing("EIO", ["writeThen"], JOURNAL);
    const outcomes = await Promise.all([
      append(engine.storage, stream, "a"),
      append(engine.storage, stream, "b"),
      settled(engine.storage, stream),
    ]);
    assert.deepEqual(outcomes, ["storage-unavailable", "storage-unavailable", "storage-unavailable"]);
    engine.files.gate = null;
    await assertFaulted(engine, stream);
    assert.deepEqual(await readAll(engine.storage, stream), Buffer.from("kept"));
    await engine.storage.close();
    assert.ok(!existsSync(join(engine.dir, "lock")));
    const again = await openEngine({ dir: engine.dir });
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.from("kept"));
    await again.storage.close();
  });

  test("a journal write that fails while the engine closes is final too, and the next start takes the journal", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    engine.files.gate = failing("EIO", ["writeThen"], JOURNAL);
    const late = append(engine.storage, stream, "lost");
    await engine.storage.close();
    assert.equal(await late, "storage-unavailable");
    const again = await openEngine({ dir: engine.dir });
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.from("kept"));
    await again.storage.close();
  });

  test("what comes while the engine closes fails, and nobody waits for it", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    const next = new Barrier();
    engine.files.gate = ({ kind, path }) => (kind === "write" && JOURNAL.test(path) ? next.opened : undefined);
    const closed = engine.storage.close();
    await engine.files.idle();
    const late = [append(engine.storage, stream, "late"), remove(engine.storage, stream)];
    await engine.files.idle();
    next.open();
    assert.deepEqual(await Promise.all(late), ["storage-unavailable", "storage-unavailable"]);
    await closed;
    const again = await openEngine({ dir: engine.dir });
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.from("kept"));
    await again.storage.close();
  });

  test("a clean end leaves to the journal what would take too long, and the next start takes it from there", async (t) => {
    const { storage, files, clock, dir } = await openEngine();
    const names = Array.from({ length: 100 }, (_, index) => `s${index}`);
    for (const name of names) await created(storage, name, name);
    const disk = new Barrier();
    files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? disk.opened : undefined);
    const closed = storage.close();
    await files.idle();
    clock.advance(5000);
    disk.open();
    await closed;
    const written = files.count("rename", /meta\.json/);
    assert.ok(written > 0 && written < names.length, `${written} streams are written out`);
    const again = await openFor(t, { dir });
    for (const name of names) assert.deepEqual(await readAll(again.storage, await loaded(again.storage, name)), Buffer.from(name));
  });

  test("a failed sync of a large payload is final", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s");
    engine.files.gate = failing("EIO", ["sync"], SEGMENT);
    const outcomes = await Promise.all([append(engine.storage, stream, bytesOf(5000)), append(engine.storage, stream, "behind")]);
    assert.deepEqual(outcomes, ["storage-unavailable", "storage-unavailable"]);
    await assertFaulted(engine, stream);
    await engine.storage.close();
  });

  test("a failed sync is final also for a stream that memory only lets go of", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    engine.files.gate = failing("EIO", ["sync"], SEGMENT);
    await assert.rejects(engine.storage.persist(stream), { code: "EIO" });
    engine.files.gate = null;
    await assertFaulted(engine, stream);
    await engine.storage.close();
    const again = await openEngine({ dir: engine.dir });
    assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "s")), Buffer.from("kept"));
    await again.storage.close();
  });

  for (const [what, kinds, path] of [
    ["sync of a segment in a checkpoint", ["sync"], SEGMENT],
    ["sidecar in a checkpoint", ["rename"], /meta\.json/],
    ["write behind the journal", ["write"], SEGMENT],
    ["next journal file", ["write"], JOURNAL],
  ] as const) {
    test(`a failed ${what} is final`, async () => {
      const engine = await openEngine();
      const stream = await created(engine.storage, "s");
      engine.files.gate = failing("EIO", kinds, path);
      for (let index = 0; index < 200 && engine.faults.length === 0; index += 1) await append(engine.storage, stream, bytesOf(1500, index));
      await engine.files.idle();
      await assertFaulted(engine, stream);
      await engine.storage.close();
    });
  }

  test("at the very end is a fault too, and the directory is given back", async () => {
    const { storage, files, dir, faults } = await openEngine();
    await created(storage, "s", "kept");
    files.gate = failing("EIO", ["write"], JOURNAL);
    await storage.close();
    assert.equal(faults.length, 1);
    assert.ok(!existsSync(join(dir, "lock")));
  });

  test("what is on its way when a background operation fails still settles as it ends", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s");
    // One frame more, and the next file is made.
    for (let index = 0; index < 8; index += 1) await append(engine.storage, stream, bytesOf(1500, index));
    const disk = new Barrier();
    engine.files.gate = ({ kind, path }) =>
      kind === "write" && JOURNAL.test(path) ? diskError("EIO") : kind === "writeThen" ? disk.opened : undefined;
    const outcomes: Promise<Outcome>[] = [];
    const total = 30;
    for (let index = 0; index < total; index += 1) outcomes.push(append(engine.storage, stream, bytesOf(1500, index)));
    await engine.files.idle();
    disk.open();
    const ends = await Promise.all(outcomes);
    assert.equal(ends[0], "durable");
    await assertFaulted(engine, stream);
    await engine.storage.close();
    const again = await openEngine({ dir: engine.dir });
    const found = await loaded(again.storage, "s");
    assert.ok(found.state.tail >= ends.filter((how) => how === "durable").length * 1500);
    await again.storage.close();
  });
});
