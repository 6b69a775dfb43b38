import assert from "node:assert/strict";
import { existsSync, rmSync } from "node:fs";
import { describe, test, type TestContext } from "node:test";
import { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { Layout, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { DamagedStreamError, type Storage } from "../../../../src/storage/storage.js";
import {
  append,
  bytesOf,
  changeSidecar,
  crashAndRecover,
  created,
  forked,
  loaded,
  openEngine,
  originAt,
  readAll,
  recordOf,
  remove,
  reopen,
  settled,
  startCreate,
  type Engine,
} from "../../../helpers/engine.js";
import { trimBefore } from "../../../helpers/trim.js";

async function engineFor(t: TestContext): Promise<Engine> {
  const engine = await openEngine();
  t.after(() => engine.storage.close());
  return engine;
}

function isOnDisk(engine: Engine, name: string): boolean {
  return existsSync(new Layout(engine.dir).streamDirectory(name));
}

async function text(storage: Storage, name: string): Promise<string> {
  return (await readAll(storage, await loaded(storage, name))).toString();
}

const ENDS = [
  ["after a clean end", reopen],
  ["after a crash", crashAndRecover],
] as const;

describe("forks", () => {
  for (const [end, again] of ENDS) {
    test(`share what their source had, and go on by themselves, also ${end}`, async (t) => {
      const first = await openEngine();
      const source = await created(first.storage, "source", "shared");
      const left = await forked(first.storage, source, "left");
      const right = await forked(first.storage, left, "right", 3);
      for (const [stream, more] of [
        [source, " source"],
        [left, " left"],
        [right, " right"],
      ] as const)
        await append(first.storage, stream, more);
      const engine = await again(first);
      t.after(() => engine.storage.close());
      for (const name of ["right", "left", "source"])
        assert.equal(await text(engine.storage, name), name === "right" ? "sha right" : `shared ${name}`);
      const kept = await loaded(engine.storage, "right");
      assert.deepEqual([kept.forkDepth, kept.config.forkedFrom?.point, kept.earliest], [2, 3, 0]);
      assert.equal((await loaded(engine.storage, "source")).forkCount, 1);
    });

    test(`keep what they need of a deleted source, and the last one takes it along, also ${end}`, async (t) => {
      const first = await openEngine();
      const root = await created(first.storage, "root", "A");
      const middle = await forked(first.storage, root, "middle");
      await append(first.storage, middle, "B");
      const leaf = await forked(first.storage, middle, "leaf");
      await append(first.storage, leaf, "C");
      for (const stream of [root, middle]) assert.equal(await remove(first.storage, stream), "durable");
      const engine = await again(first);
      t.after(() => engine.storage.close());
      const { storage } = engine;
      for (const name of ["root", "middle"]) assert.equal((await loaded(storage, name)).standing, "kept", name);
      assert.equal(await text(storage, "leaf"), "ABC");
      assert.equal(await remove(storage, await loaded(storage, "leaf")), "durable");
      await engine.files.idle();
      for (const name of ["leaf", "middle", "root"]) {
        assert.equal(await storage.load(name), null, name);
        assert.equal(isOnDisk(engine, name), false, name);
      }
    });
  }

  test("that are gone leave their source as it was", async (t) => {
    const engine = await engineFor(t);
    const { storage } = engine;
    const source = await created(storage, "source", "alive");
    for (const name of ["one", "two"]) await remove(storage, await forked(storage, source, name));
    assert.equal(source.forkCount, 0);
    assert.equal(await remove(storage, source), "durable");
    assert.equal(source.standing, "gone");
  });

  test("whose creation failed leave no reference", async (t) => {
    const engine = await engineFor(t);
    const { storage, files } = engine;
    const source = await created(storage, "source", "alive");
    files.gate = ({ kind }) => (kind === "writeThen" ? Object.assign(new Error("full"), { code: "ENOSPC" }) : undefined);
    const { outcome } = startCreate(storage, "fork", "", { forkedFrom: originAt(source, 5) });
    assert.equal(await outcome, "storage-full");
    files.gate = null;
    engine.clock.advance(1000);
    await files.idle();
    assert.equal(source.forkCount, 0);
    assert.equal(await remove(storage, source), "durable");
    assert.equal(source.standing, "gone");
  });

  test("whose creation failed leave no handle that the journal never explains", async (t) => {
    const first = await openEngine();
    await created(first.storage, "source", "alive");
    const { storage, files, clock } = await reopen(first);
    const source = await loaded(storage, "source");
    files.gate = ({ kind }) => (kind === "writeThen" ? Object.assign(new Error("full"), { code: "ENOSPC" }) : undefined);
    assert.equal(await startCreate(storage, "fork", "", { forkedFrom: originAt(source, 5) }).outcome, "storage-full");
    files.gate = null;
    clock.advance(1000);
    await files.idle();
    assert.equal(await append(storage, source, " still"), "durable");
    const engine = await crashAndRecover({ ...first, storage, files, clock });
    t.after(() => engine.storage.close());
    assert.equal(await text(engine.storage, "source"), "alive still");
  });

  test("of what is not a live stream in memory are a fault", async (t) => {
    const { storage } = await engineFor(t);
    const source = await created(storage, "source", "alive");
    await forked(storage, source, "one");
    await remove(storage, source);
    for (const name of ["source", "nobody"]) {
      await assert.rejects(startCreate(storage, "two", "", { forkedFrom: { ...originAt(source, 5), name } }).outcome, RangeError);
    }
  });

  test("are not made where what they were to share is dropped meanwhile", async (t) => {
    const { storage } = await engineFor(t);
    const source = await created(storage, "source", bytesOf(5000, 1));
    await append(storage, source, bytesOf(5000, 2));
    const origin = originAt(source, 7000);
    trimBefore(storage, source, 5000);
    assert.equal(await startCreate(storage, "early", "", { forkedFrom: origin }).outcome, "overloaded");
    await settled(storage, source);
    assert.equal(await startCreate(storage, "late", "", { forkedFrom: origin }).outcome, "overloaded");
    assert.equal((await forked(storage, source, "again", 7000)).earliest, 5000);
  });

  test("keep their source in memory, and let it go with them", async (t) => {
    const again = await reopen(await openEngine());
    t.after(() => again.storage.close());
    const { storage } = again;
    const source = await created(storage, "source", "shared");
    const one = await forked(storage, source, "one");
    for (const stream of [one, source]) await storage.persist(stream);
    assert.equal(storage.release(source), false);
    assert.equal(storage.release(one), true);
    assert.equal(storage.release(source), true);
    await loaded(storage, "one");
    const reloaded = await loaded(storage, "source");
    assert.ok(reloaded instanceof FileStream);
    assert.equal(reloaded.ties.dependents, 1);
  });

  test("hold retention back while they need what would go, and no longer", async (t) => {
    const { storage } = await engineFor(t);
    const source = await created(storage, "source", bytesOf(5000, 1));
    await append(storage, source, bytesOf(5000, 2));
    const one = await forked(storage, source, "one", 5000);
    await append(storage, one, bytesOf(5000, 3));
    trimBefore(storage, source, 5000);
    await settled(storage, source);
    assert.equal(source.earliest, 0);
    trimBefore(storage, one, 5000);
    await settled(storage, one);
    assert.equal(one.earliest, 5000);
    trimBefore(storage, source, 5000);
    await settled(storage, source);
    assert.equal(source.earliest, 5000);
    assert.deepEqual(await readAll(storage, one), bytesOf(5000, 3));
    assert.deepEqual(await readAll(storage, source), bytesOf(5000, 2));
  });

  test("are not taken where the source dropped its beginning since the place was looked for", async (t) => {
    const { storage } = await engineFor(t);
    const source = await created(storage, "source", bytesOf(5000, 1));
    await append(storage, source, bytesOf(5000, 2));
    const forkedFrom = originAt(source, 5000);
    trimBefore(storage, source, 5000);
    await settled(storage, source);
    const config = { ...source.config, forkedFrom };
    assert.equal(
      storage.create("one", config, recordOf(bytesOf(0)), () => undefined),
      "overloaded",
    );
  });

  test("that go last take the note of them along, where only they kept the source in memory", async (t) => {
    const first = await openEngine();
    await forked(first.storage, await created(first.storage, "source", "shared"), "one");
    const second = await reopen(first);
    await remove(second.storage, await loaded(second.storage, "one"));
    const { storage } = await reopen(second);
    t.after(() => storage.close());
    assert.equal((await loaded(storage, "source")).forkCount, 0);
  });

  test("begin where a source that lost its beginning begins", async (t) => {
    const engine = await engineFor(t);
    const { storage } = engine;
    const source = await created(storage, "source", bytesOf(5000, 1));
    await append(storage, source, bytesOf(5000, 2));
    trimBefore(storage, source, 5000);
    await settled(storage, source);
    const one = await forked(storage, source, "one");
    assert.equal(one.earliest, 5000);
    assert.equal(one.partStartBefore(5000), source.partStartBefore(5000));
    assert.deepEqual(await readAll(storage, one), bytesOf(5000, 2));
  });

  test("have the tokens of their source up to the fork point, and their own behind it", async (t) => {
    const { storage } = await engineFor(t);
    const source = await created(storage, "source", bytesOf(3000));
    await append(storage, source, bytesOf(3000));
    const one = await forked(storage, source, "one", 4000);
    await append(storage, one, bytesOf(10));
    assert.deepEqual(
      [0, 1, 3000, 3001, 4000, 4001].map((position) => one.partStartBefore(position)),
      [0, 0, 0, 3000, 3000, 4000],
    );
    assert.equal(one.hasPart(3000, 1000), true);
    assert.equal(one.hasPart(3000, 1001), false);
    assert.equal(one.hasPart(4000, 10), true);
  });

  test("whose source's files are gone are damaged, and say so", async (t) => {
    const first = await openEngine();
    const source = await created(first.storage, "source", "shared");
    await forked(first.storage, source, "one");
    await first.storage.close();
    rmSync(sidecarPath(new Layout(first.dir).streamDirectory("source")));
    rmSync(new Layout(first.dir).streamDirectory("source"), { recursive: true });
    const engine = await openEngine({ dir: first.dir });
    t.after(() => engine.storage.close());
    await assert.rejects(
      engine.storage.load("one"),
      (error) => error instanceof DamagedStreamError && /its source "source" is missing/.test(error.message),
    );
    assert.equal(await engine.storage.deleteDamaged("one"), "durable");
    assert.equal(await engine.storage.load("one"), null);
  });

  test("that were forked from each other are damaged, and say so", async (t) => {
    const first = await openEngine();
    const one = await created(first.storage, "one", "shared");
    const two = await forked(first.storage, one, "two");
    const forkedFrom = originAt(two, 6);
    await first.storage.close();
    changeSidecar(sidecarPath(new Layout(first.dir).streamDirectory("one")), ({ config }) => ({ config: { ...config, forkedFrom } }));
    const engine = await openEngine({ dir: first.dir });
    t.after(() => engine.storage.close());
    await assert.rejects(
      engine.storage.load("one"),
      (error) => error instanceof DamagedStreamError && /it was forked from itself/.test(error.message),
    );
  });
});
