import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { describe, test, type TestContext } from "node:test";
import { Layout, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { encodeRefusal } from "../../../../src/storage/file/format/sidecar.js";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import {
  append,
  changeSidecar,
  crash,
  crashAndRecover,
  created,
  forked,
  loaded,
  openEngine,
  openFor,
  remove,
  reopen,
  settled,
  type Engine,
} from "../../../helpers/engine.js";
import { diskError, WatchedFiles, type Gate } from "../../../helpers/watched-files.js";

function isOnDisk(engine: Engine, name: string): boolean {
  return existsSync(new Layout(engine.dir).streamDirectory(name));
}

/** Makes a sidecar useless in the directory, or its file unreadable from then on. */
type Harm = (path: string) => Gate | null;

const cutOff: Harm = (path) => {
  truncateSync(path, 300);
  return null;
};

const emptied: Harm = (path) => {
  truncateSync(path, 0);
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

describe("forks of a damaged source", () => {
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
    const { storage, log } = await openFor(t, { dir, files });
    await files.idle();
    await assert.rejects(storage.load("source"), DamagedStreamError);
    assert.equal(await storage.deleteDamaged("source"), "needed");
    await files.idle();
    assert.ok(existsSync(segmentPath(source ?? "", 0)));
    assert.equal(log.filter(({ level }) => level === "warn").at(-1)?.fields["unclear"], sidecarPath(one ?? ""));
  });

  for (const [what, harm, isNeeded] of [
    ["can't be read, as its source's can't", unreadable, true],
    ["is empty, as its source's is", emptied, false],
  ] as const)
    test(`whose sidecar ${what}, ${isNeeded ? "keep the source: they may name it" : "keep nothing: nobody can tell whose they were"}`, async (t) => {
      const first = await sourceToBeHarmed();
      await forked(first.storage, await loaded(first.storage, "source"), "one");
      const dir = await crash(await reopen(first));
      const gates = ["source", "one"].map((name) => harm(sidecarPath(new Layout(dir).streamDirectory(name))));
      const files = new WatchedFiles();
      files.gate = (operation) => gates.map((gate) => gate?.(operation)).find((refusal) => refusal !== undefined);
      const engine = await openFor(t, { dir, files });
      assert.equal(await engine.storage.deleteDamaged("source"), isNeeded ? "needed" : "durable");
      await files.idle();
      assert.equal(isOnDisk(engine, "source"), isNeeded);
    });

  for (const [what, bytes] of [
    ["was refused by a repair", encodeRefusal("its bytes are not what was written")],
    ["is empty", Buffer.alloc(0)],
    ["is missing", null],
  ] as const)
    test(`whose sidecar ${what} keep a source that lists them: a repair makes them from its list`, async (t) => {
      const first = await sourceToBeHarmed();
      await append(first.storage, await forked(first.storage, await loaded(first.storage, "source"), "one"), "own");
      const dir = await crash(await reopen(first));
      const [source, one] = ["source", "one"].map((name) => sidecarPath(new Layout(dir).streamDirectory(name)));
      assert.ok(source !== undefined && one !== undefined);
      writeFileSync(source, readFileSync(source, "utf8").replace('"closed": false', '"closed": fals3'));
      if (bytes === null) rmSync(one);
      else writeFileSync(one, bytes);
      const { storage } = await openFor(t, { dir });
      assert.equal(await storage.deleteDamaged("source"), "needed");
      assert.equal(await storage.deleteDamaged("one"), "durable");
      assert.equal(await storage.deleteDamaged("source"), "durable");
    });

  test("that are kept for their own forks are not deleted again, and the log says for which", async (t) => {
    const first = await openEngine();
    let source = await created(first.storage, "a", "shared");
    for (const name of "bc") source = await forked(first.storage, source, name);
    const { storage, log } = await harmed(t, await reopen(first), "a", cutOff);
    const deleted: string[] = [];
    storage.streamList.events.on("deleted", (name) => deleted.push(name));
    for (const outcome of ["durable", "needed"]) {
      await assert.rejects(storage.load("b"), DamagedStreamError);
      assert.equal(await storage.deleteDamaged("b"), outcome);
    }
    assert.deepEqual(deleted, ["b"]);
    assert.equal(log.filter(({ level }) => level === "warn").at(-1)?.fields["forks"], '["c"]');
  });

  test("that are sound stay so where the deletion of one of them keeps it for others", async (t) => {
    const first = await openEngine();
    await created(first.storage, "a", "shared");
    const second = await reopen(first);
    const b = await forked(second.storage, await loaded(second.storage, "a"), "b");
    await forked(second.storage, b, "c");
    const dir = await crash(second);
    cutOff(sidecarPath(new Layout(dir).streamDirectory("a")));
    const engine = await openFor(t, { dir });
    await assert.rejects(engine.storage.load("b"), DamagedStreamError);
    assert.equal(await engine.storage.deleteDamaged("b"), "durable");
    await engine.files.idle();
    await engine.storage.close();
    assert.deepEqual(
      engine.log.filter(({ level, fields }) => level === "error" && fields["stream"] === "b"),
      [],
    );
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
});
