import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import { Layout, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { SECTOR_BYTES } from "../../../../src/storage/file/format/record.js";
import {
  append,
  assertBytes,
  bytesOf,
  crash,
  crashAndRecover,
  created,
  loaded,
  openEngine,
  openFor,
  readAll,
  recordOf,
  remove,
  reopen,
  settled,
  startCreate,
  type Engine,
} from "../../../helpers/engine.js";
import { framesOf, journalFiles } from "../../../helpers/several-journal-files.js";
import { turnByte } from "../../../helpers/spoilt-files.js";
import { Barrier, diskError, failing, WatchedFiles } from "../../../helpers/watched-files.js";

describe("recovery after kill -9", () => {
  test("everything that was acknowledged is there, and can be appended to", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "first,");
    const producer = { id: "p", epoch: 3, seq: 7 };
    await append(engine.storage, stream, recordOf("second", { producer, seq: "b", atMs: 123 }));
    const again = await crashAndRecover(engine);
    t.after(() => again.storage.close());
    const found = await assertBytes(again, "s", Buffer.from("first,second"));
    assert.deepEqual(found.state, stream.state);
    assert.deepEqual(found.config, stream.config);
    assert.equal(found.id, stream.id);
    assert.equal(await append(again.storage, found, ",third"), "durable");
    await assertBytes(again, "s", Buffer.from("first,second,third"));
    assert.ok(
      again.log.some(
        ({ level, message, fields }) => level === "info" && message === "recovered from the journal" && fields["streams"] === 1,
      ),
    );
  });

  test("a crash right after a recovery is recovered by the next, and the one after that", async (t) => {
    let engine = await openEngine();
    const stream = await created(engine.storage, "s");
    let expected = Buffer.alloc(0);
    for (let round = 0; round < 60; round += 1) {
      const part = bytesOf(round % 7 === 3 ? 5000 : 900, round);
      expected = Buffer.concat([expected, part]);
      assert.equal(await append(engine.storage, stream, part), "durable");
    }
    for (let time = 0; time < 4; time += 1) {
      engine = await crashAndRecover(engine);
      await assertBytes(engine, "s", expected);
      if (time % 2 === 0) await engine.files.idle();
    }
    t.after(() => engine.storage.close());
    const found = await loaded(engine.storage, "s");
    assert.equal(await append(engine.storage, found, "!"), "durable");
    await assertBytes(engine, "s", Buffer.concat([expected, Buffer.from("!")]));
  });

  test("several journal files that wait for their checkpoint are recovered, and so is a crash after that checkpoint", async (t) => {
    const engine = await openEngine();
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? new Barrier().opened : undefined);
    const stream = await created(engine.storage, "s");
    const doomed = await created(engine.storage, "doomed", bytesOf(100));
    const parts: Buffer[] = [];
    for (let index = 0; journalFiles(engine.dir).length < 3; index += 1) {
      parts.push(bytesOf(1500, index));
      assert.equal(await append(engine.storage, stream, bytesOf(1500, index)), "durable");
    }
    await remove(engine.storage, doomed);
    const expected = Buffer.concat(parts);
    const again = await crashAndRecover(engine);
    await again.files.idle();
    await assertBytes(again, "s", expected);
    const third = await crashAndRecover(again);
    t.after(() => third.storage.close());
    await assertBytes(third, "s", expected);
    assert.equal(await third.storage.load("doomed"), null);
  });

  test("large payloads that went past the journal are recovered between small ones", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", bytesOf(5000, 99));
    const parts = [bytesOf(5000, 99), ...[100, 4096, 200, 9000, 4096, 50, 6000, 1].map((size, index) => bytesOf(size, index))];
    await Promise.all(parts.slice(1).map((part) => append(engine.storage, stream, part)));
    const expected = Buffer.concat(parts);
    await assertBytes(engine, "s", expected);
    const again = await crashAndRecover(engine);
    await assertBytes(again, "s", expected);
    const found = await loaded(again.storage, "s");
    assert.equal(await append(again.storage, found, "tail"), "durable");
    const third = await crashAndRecover(again);
    await assertBytes(third, "s", Buffer.concat([expected, Buffer.from("tail")]));
    const closed = await reopen(third);
    t.after(() => closed.storage.close());
    await assertBytes(closed, "s", Buffer.concat([expected, Buffer.from("tail")]));
  });

  test("a large payload whose record was never written leaves nothing behind", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    await engine.files.idle();
    engine.files.gate = ({ kind }) => (kind === "writeThen" ? new Barrier().opened : undefined);
    void append(engine.storage, stream, bytesOf(5000));
    void startCreate(engine.storage, "unborn", bytesOf(6000));
    await engine.files.idle();
    const dir = await crash(engine);
    const layout = new Layout(dir);
    assert.ok(existsSync(sidecarPath(layout.streamDirectory("unborn"))), "the directory was claimed");
    const again = await openFor(t, { dir });
    await assertBytes(again, "s", Buffer.from("kept"));
    assert.equal(await again.storage.load("unborn"), null);
    const found = await loaded(again.storage, "s");
    assert.equal(await append(again.storage, found, " and more"), "durable");
    await created(again.storage, "unborn", "born after all");
    await again.storage.persist(found);
    assert.equal(readFileSync(segmentPath(layout.streamDirectory("s"), 0), "latin1"), "kept and more");
    await assertBytes(again, "unborn", Buffer.from("born after all"));
  });

  test("a claimed directory belongs to its stream once the creation is durable", async (t) => {
    const engine = await openEngine();
    await created(engine.storage, "big", bytesOf(6000));
    const again = await crashAndRecover(engine);
    t.after(() => again.storage.close());
    await assertBytes(again, "big", bytesOf(6000));
  });

  test("deleted and made again, a name has the newest stream and nothing else", async (t) => {
    const sizes = [0, 10, 5000];
    const engine = await openEngine();
    const names: string[] = [];
    for (const first of sizes) {
      for (const second of sizes) {
        for (const third of sizes) {
          const name = `${first}-${second}-${third}`;
          names.push(name);
          const { stream: one } = startCreate(engine.storage, name, bytesOf(first, 1));
          assert.ok(one !== null);
          assert.equal(await remove(engine.storage, one), "durable");
          const { stream: two } = startCreate(engine.storage, name, bytesOf(second, 2));
          assert.ok(two !== null);
          void append(engine.storage, two, bytesOf(third, 3));
        }
      }
    }
    for (const name of names) assert.equal(await settled(engine.storage, await loaded(engine.storage, name)), "durable");
    const check = async (at: Engine): Promise<void> => {
      for (const name of names) {
        const [, second = 0, third = 0] = name.split("-").map(Number);
        await assertBytes(at, name, Buffer.concat([bytesOf(second, 2), bytesOf(third, 3)]));
      }
    };
    await check(engine);
    const again = await crashAndRecover(engine);
    await check(again);
    const third = await reopen(again);
    t.after(() => third.storage.close());
    await check(third);
  });

  for (const [where, gate] of [
    ["also when its files are still in their place", null],
    ["also where the directory that has them can't be listed", failing("EIO", ["list"], /streams.[0-9a-f]{2}$/)],
  ] as const)
    test(`a deletion that is durable is finished, ${where}`, async (t) => {
      const engine = await openEngine();
      const stream = await created(engine.storage, "s", bytesOf(5000));
      await engine.storage.persist(stream);
      await engine.files.idle();
      engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("streams") ? new Barrier().opened : undefined);
      assert.equal(await remove(engine.storage, stream), "durable");
      const dir = await crash(engine);
      assert.ok(existsSync(sidecarPath(new Layout(dir).streamDirectory("s"))));
      const files = new WatchedFiles();
      files.gate = gate;
      const again = await openFor(t, { dir, files });
      assert.equal(await again.storage.load("s"), null);
      await again.files.idle();
      assert.ok(!existsSync(new Layout(dir).streamDirectory("s")));
      assert.deepEqual(readdirSync(join(dir, "trash")), []);
    });

  test("many deletions cost a list of each directory of streams, and no look at what has left nothing", async (t) => {
    const engine = await openEngine();
    for (let index = 0; index < 300; index += 1) {
      const stream = await created(engine.storage, `s${index}`);
      assert.equal(await remove(engine.storage, stream), "durable");
    }
    const { files } = await openFor(t, { dir: await crash(engine) });
    const lists = files.count("list", /streams.[0-9a-f]{2}$/);
    assert.ok(lists > 0 && lists <= 256, `${lists} lists`);
    assert.deepEqual(
      files.operations.filter(({ kind, path }) => /streams.[0-9a-f]{2}./.test(path) && kind !== "list"),
      [],
    );
  });

  test("a deletion that is durable is finished, also when the sidecar was damaged since", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", bytesOf(5000));
    await engine.storage.persist(stream);
    engine.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("streams") ? new Barrier().opened : undefined);
    assert.equal(await remove(engine.storage, stream), "durable");
    const dir = await crash(engine);
    turnByte(sidecarPath(new Layout(dir).streamDirectory("s")), 60);
    const again = await openFor(t, { dir });
    assert.equal(await again.storage.load("s"), null);
    await created(again.storage, "s", "new");
    await assertBytes(again, "s", Buffer.from("new"));
  });

  test("what a reader's touch noted survives", async (t) => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s");
    engine.storage.touch(stream, 999);
    await settled(engine.storage, stream);
    const again = await crashAndRecover(engine);
    t.after(() => again.storage.close());
    assert.equal((await loaded(again.storage, "s")).state.touchedAtMs, 999);
  });

  test("more than memory may hold is written to segments while the streams are opened", async (t) => {
    const engine = await openEngine({ journalBytes: 1024 * 1024, tailCacheBytes: 1024 * 1024 });
    const streams = await Promise.all([0, 1, 2, 3].map((index) => created(engine.storage, `s${index}`)));
    const parts = Array.from({ length: 20 }, (_, index) => bytesOf(2000, index));
    for (const part of parts) await Promise.all(streams.map((stream) => append(engine.storage, stream, part)));
    const again = await crashAndRecover(engine, { tailCacheBytes: 16 * 1024 });
    t.after(() => again.storage.close());
    // The checkpoint comes when all are open.
    again.files.gate = ({ kind, path }) => (kind === "rename" && path.includes("meta.json") ? new Barrier().opened : undefined);
    await loaded(again.storage, "s0");
    assert.ok(again.files.count("write", /\.seg$/) > 0);
    again.files.gate = null;
    for (let index = 0; index < 4; index += 1) await assertBytes(again, `s${index}`, Buffer.concat(parts));
  });
});

test("what is behind the last frame is made nothing: a frame that was never whole there may come back with a power loss", async (t) => {
  const engine = await openEngine();
  await created(engine.storage, "s", "here");
  const dir = await crash(engine);
  const [path] = journalFiles(dir);
  assert.ok(path !== undefined);
  const { end } = framesOf(path);
  const bytes = readFileSync(path);
  bytes.fill(0xff, end, end + 100);
  writeFileSync(path, bytes);
  const files = new WatchedFiles();
  files.gate = ({ kind, path }) => (kind === "rename" && path.includes("/journal/") ? new Barrier().opened : undefined);
  const again = await openEngine({ dir, files });
  assert.ok(
    readFileSync(path)
      .subarray(end, end + SECTOR_BYTES)
      .every((byte) => byte === 0),
  );
  const third = await crashAndRecover(again);
  t.after(() => third.storage.close());
  await assertBytes(third, "s", Buffer.from("here"));
});

test("a deletion of a stream that could not be read counts for what is there when it can be read again", async () => {
  const first = await openEngine();
  await created(first.storage, "s", bytesOf(5000));
  await created(first.storage, "kept", "here");
  const engine = await reopen(first);
  engine.files.gate = ({ kind, path }) => {
    if (kind === "rename" && path.endsWith("/s")) return new Barrier().opened;
    return kind === "read" && path.endsWith("/s/meta.json") ? diskError("EIO") : undefined;
  };
  await assert.rejects(engine.storage.load("s"), DamagedStreamError);
  assert.equal(await engine.storage.deleteDamaged("s"), "durable");
  const again = await openEngine({ dir: await crash(engine) });
  assert.equal(await again.storage.load("s"), null);
  assert.deepEqual(await readAll(again.storage, await loaded(again.storage, "kept")), Buffer.from("here"));
  await again.storage.close();
});
