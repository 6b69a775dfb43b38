import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { describe, test, type TestContext } from "node:test";
import { FileStream } from "../../../../src/storage/file/memory/file-stream.js";
import { Layout, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { DamagedStreamError, type Storage } from "../../../../src/storage/storage.js";
import {
  append,
  bytesOf,
  changeSidecar,
  crash,
  crashAndRecover,
  created,
  forked,
  loaded,
  openEngine,
  openFor,
  originAt,
  readAll,
  recordOf,
  remove,
  reopen,
  settled,
  startCreate,
  type Engine,
} from "../../../helpers/engine.js";
import { diskError, WatchedFiles, type Gate } from "../../../helpers/watched-files.js";
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

/** Makes a sidecar useless in the directory, or its file unreadable from then on. */
type Harm = (path: string) => Gate | null;

const cutOff: Harm = (path) => {
  truncateSync(path, 300);
  return null;
};

const unreadable: Harm = (harmed) => (operation) => (operation.kind === "read" && operation.path === harmed ? diskError("EIO") : undefined);

/** Nothing can be written into a stream's directory: neither its segments nor that it is damaged. */
function unwritable(directory: string): Gate {
  return ({ kind, path }) => {
    const isSegment = kind === "open" && path.endsWith(".seg");
    return path.startsWith(`${directory}/`) && (isSegment || kind === "createNew" || kind === "rename") ? diskError("EACCES") : undefined;
  };
}

const HARMS = [
  ["whose sidecar is cut off", cutOff],
  ["whose sidecar can't be read", unreadable],
] as const;

/** An engine with a source in its own files. */
async function sourceToBeHarmed(): Promise<Engine> {
  const first = await openEngine();
  await created(first.storage, "source", "shared");
  return reopen(first);
}

/** Opens the directory of an engine again, as a crash leaves it, with one sidecar harmed. */
async function harmed(t: TestContext, engine: Engine, name: string, harm: Harm): Promise<Engine> {
  const dir = await crash(engine);
  const files = new WatchedFiles();
  files.gate = harm(sidecarPath(new Layout(dir).streamDirectory(name)));
  const again = await openEngine({ dir, files });
  t.after(() => again.storage.close());
  return again;
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

  for (const [where, again] of [
    ["on disk", reopen],
    ["in the journal", crashAndRecover],
  ] as const)
    for (const [what, harm] of HARMS) {
      test(`keep a source ${what} while they are there, also when it is deleted; they are ${where}`, async (t) => {
        const first = await sourceToBeHarmed();
        await forked(first.storage, await loaded(first.storage, "source"), "one");
        const { dir, files, log, storage } = await again(first, {}).then((engine) => harmed(t, engine, "source", harm));
        await assert.rejects(storage.load("source"), DamagedStreamError);
        assert.equal(await storage.deleteDamaged("source"), "needed");
        assert.deepEqual(
          log.filter(({ level }) => level === "warn").map(({ fields }) => fields["forks"]),
          ['["one"]'],
        );
        await files.idle();
        assert.equal(existsSync(new Layout(dir).streamDirectory("source")), true);
        await assert.rejects(storage.load("one"), DamagedStreamError);
        assert.equal(await storage.deleteDamaged("one"), "durable");
        assert.equal(await storage.deleteDamaged("source"), "durable");
        await files.idle();
        assert.equal(existsSync(new Layout(dir).streamDirectory("source")), false);
      });
    }

  test("of a source that can't be written are forgotten by it, so that it can be deleted behind them", async (t) => {
    const first = await sourceToBeHarmed();
    const source = await loaded(first.storage, "source");
    await forked(first.storage, source, "one");
    const second = await reopen(first);
    await append(second.storage, await loaded(second.storage, "source"), "more");
    const dir = await crash(second);
    const files = new WatchedFiles();
    files.gate = unwritable(new Layout(dir).streamDirectory("source"));
    const engine = await openFor(t, { dir, files });
    const { storage } = engine;
    await files.idle();
    for (const name of ["source", "one"]) await assert.rejects(storage.load(name), DamagedStreamError);
    assert.equal(await storage.deleteDamaged("source"), "needed");
    assert.equal(await storage.deleteDamaged("one"), "durable");
    assert.equal(await storage.deleteDamaged("source"), "durable");
    files.gate = null;
    await files.idle();
    assert.equal(isOnDisk(engine, "source"), false);
    assert.equal((await created(storage, "source", "anew")).state.tail, 4);
  });

  test("are forgotten also by a source that has been damaged since it was loaded", async (t) => {
    const first = await sourceToBeHarmed();
    await forked(first.storage, await loaded(first.storage, "source"), "one");
    const { dir, storage, files } = await reopen(first);
    t.after(() => storage.close());
    const source = await loaded(storage, "source");
    files.gate = unwritable(new Layout(dir).streamDirectory("source"));
    await append(storage, source, "more");
    await storage.persist(source).catch(() => undefined);
    await assert.rejects(storage.load("one"), DamagedStreamError);
    assert.equal(source.forkCount, 1);
    assert.equal(await storage.deleteDamaged("one"), "durable");
    assert.equal(source.forkCount, 0);
    files.gate = null;
  });

  test("that may be there, but can't be read, keep a source that knows of them", async (t) => {
    const first = await sourceToBeHarmed();
    await forked(first.storage, await loaded(first.storage, "source"), "one");
    const second = await reopen(first);
    await append(second.storage, await loaded(second.storage, "source"), "more");
    const dir = await crash(second);
    const files = new WatchedFiles();
    const [source, one] = ["source", "one"].map((name) => new Layout(dir).streamDirectory(name));
    const refuse = unwritable(source ?? "");
    files.gate = (operation) =>
      operation.kind === "read" && operation.path === sidecarPath(one ?? "") ? diskError("EIO") : refuse(operation);
    const { storage } = await openFor(t, { dir, files });
    await files.idle();
    await assert.rejects(storage.load("source"), DamagedStreamError);
    assert.equal(await storage.deleteDamaged("source"), "durable");
    await files.idle();
    assert.ok(existsSync(segmentPath(source ?? "", 0)), "it is only marked");
  });

  for (const order of ["dcb", "bcd", "cbd"])
    test(`in a row, of which the first is damaged, can all be deleted: ${order}`, async (t) => {
      const first = await openEngine();
      let source = await created(first.storage, "a", "shared");
      for (const name of "bcd") source = await forked(first.storage, source, name);
      const engine = await harmed(t, await reopen(first), "a", cutOff);
      const { storage, files } = engine;
      for (const name of [...order]) {
        await assert.rejects(storage.load(name), DamagedStreamError);
        assert.equal(await storage.deleteDamaged("a"), "needed");
        assert.equal(await storage.deleteDamaged(name), "durable");
      }
      await files.idle();
      assert.equal(await storage.deleteDamaged("a"), "durable");
      await files.idle();
      for (const name of "abcd") assert.equal(isOnDisk(engine, name), false, name);
    });

  test("whose sidecar is damaged count as well, those that never were do not", async (t) => {
    const first = await sourceToBeHarmed();
    const source = await loaded(first.storage, "source");
    for (const name of ["one", "two"]) await forked(first.storage, source, name);
    const engine = await harmed(t, await reopen(first), "source", cutOff);
    const sidecarOf = (name: string): string => sidecarPath(new Layout(engine.dir).streamDirectory(name));
    changeSidecar(sidecarOf("two"), () => ({ claimed: true }));
    writeFileSync(sidecarOf("one"), readFileSync(sidecarOf("one"), "utf8").replace('"closed": false', '"closed": fals3'));
    assert.equal(await engine.storage.deleteDamaged("source"), "needed");
    assert.deepEqual(engine.log.find(({ level }) => level === "warn")?.fields, { stream: "source", count: 1, forks: '["one"]' });
  });

  test("that can't be read are forgotten by their source when they are deleted, where the journal tells which it is", async (t) => {
    const first = await sourceToBeHarmed();
    const source = await loaded(first.storage, "source");
    for (const name of ["one", "two"]) await forked(first.storage, source, name);
    const second = await reopen(first);
    await append(second.storage, await loaded(second.storage, "one"), "more");
    const { storage } = await harmed(t, await crashAndRecover(second), "one", unreadable);
    await assert.rejects(storage.load("one"), DamagedStreamError);
    assert.equal(await storage.deleteDamaged("one"), "durable");
    const kept = await loaded(storage, "source");
    assert.equal(kept.forkCount, 1);
    assert.equal(await remove(storage, kept), "durable");
    assert.equal(await remove(storage, await loaded(storage, "two")), "durable");
    await settled(storage, kept);
    assert.equal(kept.standing, "gone");
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
