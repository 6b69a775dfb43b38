import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { ALL_NAMES, namesBeginningWith } from "../../../src/protocol/names/name-range.js";
import { Layout } from "../../../src/storage/file/format/layout.js";
import { openOffline } from "../../../src/storage/file/offline/offline.js";
import { repairDirectory } from "../../../src/storage/file/offline/repair.js";
import { verifyDirectory } from "../../../src/storage/file/offline/verify.js";
import { StorageBusyError } from "../../../src/storage/storage.js";
import { bytesOf, crashAndRecover, created, keptLog, loaded, openEngine, remove, reopen, type Engine } from "../../helpers/engine.js";
import { Barrier, failing } from "../../helpers/watched-files.js";

const NAMES = ["a", "a/b", "x".repeat(1000), "Ä/ö", "𝄞", "z"];
const ORDERED = [...NAMES].sort();
/** What lists the directories that hold those of streams. */
const SHARDS = /streams(.[0-9a-f]{2})?$/;
/** What lists all of these. */
const ALL_SHARDS = /streams$/;

function markerIdOf(dir: string): Buffer {
  const { directory } = JSON.parse(readFileSync(new Layout(dir).marker, "utf8")) as { readonly directory: string };
  return Buffer.from(directory, "hex");
}

function listed({ storage }: Engine): Promise<readonly string[]> {
  return storage.streamList.names(ALL_NAMES, 10_000);
}

/** An engine that ended with its names saved. */
async function ended(): Promise<{ readonly engine: Engine; readonly saved: string }> {
  const engine = await openEngine();
  for (const name of NAMES) await created(engine.storage, name, "x");
  assert.deepEqual(await listed(engine), ORDERED);
  await engine.storage.close();
  const saved = new Layout(engine.dir).names;
  assert.ok(existsSync(saved));
  return { engine, saved };
}

describe("names that were saved", () => {
  test("are the first list after the next start, which waits for no directory", async (t) => {
    const { engine } = await ended();
    const next = await reopen(engine);
    t.after(() => next.storage.close());
    const disk = new Barrier();
    next.files.gate = ({ kind, path }) => (kind === "list" && SHARDS.test(path) ? disk.opened : undefined);
    assert.deepEqual(await listed(next), ORDERED);
    await created(next.storage, "new");
    disk.open();
    await remove(next.storage, await loaded(next.storage, "z"));
    await next.files.idle();
    assert.deepEqual(await listed(next), [...ORDERED.filter((name) => name !== "z"), "new"].sort());
  });

  test("are compared with the directories, which somebody may have changed", async (t) => {
    const { engine } = await ended();
    const layout = new Layout(engine.dir);
    const elsewhere = `${layout.streamDirectory("a")}.moved`;
    renameSync(layout.streamDirectory("a"), elsewhere);
    const without = await reopen(engine);
    assert.deepEqual(await listed(without), ORDERED);
    await without.files.idle();
    const rest = [...ORDERED.filter((name) => name !== "a"), "a.moved"].sort();
    assert.deepEqual(await listed(without), rest);
    await without.storage.close();
    renameSync(elsewhere, layout.streamDirectory("a"));
    const again = await openEngine({ dir: engine.dir });
    t.after(() => again.storage.close());
    assert.deepEqual(await listed(again), rest);
    await again.files.idle();
    assert.deepEqual(await listed(again), ORDERED);
  });

  test("count for nothing once a server that does not know of them has changed something", async (t) => {
    const { engine, saved } = await ended();
    const aside = `${saved}.aside`;
    renameSync(saved, aside);
    const other = await reopen(engine);
    await created(other.storage, "new");
    await other.storage.close();
    renameSync(aside, saved);
    const next = await openEngine({ dir: engine.dir });
    t.after(() => next.storage.close());
    assert.deepEqual(await listed(next), [...ORDERED, "new"].sort());
  });

  test("count for nothing after a kill, where an old file came back", async (t) => {
    const { engine, saved } = await ended();
    const bytes = readFileSync(saved);
    const killed = await reopen(engine);
    await created(killed.storage, "new");
    await killed.storage.close();
    writeFileSync(saved, bytes);
    const next = await openEngine({ dir: engine.dir });
    t.after(() => next.storage.close());
    assert.deepEqual(await listed(next), [...ORDERED, "new"].sort());
  });

  test("are the first list after a kill, with what the journal has, and nobody had listed before", async (t) => {
    const first = await openEngine();
    for (let at = 0; at < 300; at += 1) await created(first.storage, `s${at}`, bytesOf(1000));
    await first.files.idle();
    const saved = new Layout(first.dir).names;
    assert.ok(existsSync(saved), "a checkpoint has saved them");
    const rest = Array.from({ length: 5 }, (_, at) => `t${at}`);
    for (const name of rest) await created(first.storage, name);
    await remove(first.storage, await loaded(first.storage, "s7"));
    const next = await crashAndRecover(first);
    t.after(() => next.storage.close());
    const disk = new Barrier();
    next.files.gate = ({ kind, path }) => (kind === "list" && SHARDS.test(path) ? disk.opened : undefined);
    const expected = [...Array.from({ length: 300 }, (_, at) => `s${at}`).filter((name) => name !== "s7"), ...rest].sort();
    const names = await listed(next);
    assert.deepEqual(
      names.filter((name) => name !== "s7"),
      expected,
    );
    assert.deepEqual(await next.storage.streamList.names({ from: "s99", to: null }, 3), ["s99", "t0", "t1"]);
    disk.open();
    const looked = await Promise.all(names.map((name) => next.storage.streamList.look(name)));
    assert.deepEqual(
      names.filter((_, at) => looked[at] !== null),
      expected,
    );
    await next.files.idle();
    assert.deepEqual(await listed(next), expected);
  });

  test("are gone after a repair, which may change what the journal has", async () => {
    const { engine, saved } = await ended();
    const directory = { files: engine.files, layout: new Layout(engine.dir), directoryId: markerIdOf(engine.dir) };
    await repairDirectory({ ...directory, apply: false, nowMs: 0, log: keptLog().log, say: () => {} });
    assert.ok(existsSync(saved));
    await repairDirectory({ ...directory, apply: true, nowMs: 0, log: keptLog().log, say: () => {} });
    assert.ok(!existsSync(saved));
  });

  for (const [what, change] of [
    ["damaged", (bytes: Buffer) => Buffer.from(bytes.toString("latin1").replace("z\n", "y\n"), "latin1")],
    ["cut off", (bytes: Buffer) => bytes.subarray(0, -2)],
    ["empty", () => Buffer.alloc(0)],
    [
      "of another directory",
      (bytes: Buffer) => Buffer.from(bytes.toString("latin1").replace(/"directory":"./, '"directory":"?'), "latin1"),
    ],
  ] as const) {
    test(`count for nothing where they are ${what}`, async (t) => {
      const { engine, saved } = await ended();
      writeFileSync(saved, change(readFileSync(saved)));
      const next = await reopen(engine);
      t.after(() => next.storage.close());
      assert.deepEqual(await listed(next), ORDERED);
    });
  }

  test("that can't be read or written cost nothing but time", async (t) => {
    const { engine, saved } = await ended();
    const next = await reopen(engine);
    next.files.gate = failing("EIO", ["open", "read"], /names(\.new)?$/);
    assert.deepEqual(await listed(next), ORDERED);
    await next.storage.close();
    assert.deepEqual(next.faults, []);
    rmSync(saved);
    const last = await openEngine({ dir: engine.dir });
    t.after(() => last.storage.close());
    assert.deepEqual(await listed(last), ORDERED);
  });

  test("are streamdir's own file to verify", async () => {
    const { engine } = await ended();
    const directory = await openOffline(engine.dir, false);
    const { notes } = await verifyDirectory({ ...directory, report: () => {}, progress: () => {} });
    assert.deepEqual(notes, []);
  });
});

describe("names that take too much memory", () => {
  const FEW = { maxNamesBytes: 300 };
  const all = Array.from({ length: 40 }, (_, at) => `s${String(at).padStart(2, "0")}`);

  test("are found in the directories, and in memory, each time", async (t) => {
    const engine = await openEngine(FEW);
    t.after(() => engine.storage.close());
    assert.deepEqual(await listed(engine), []);
    for (const name of all) await created(engine.storage, name, "x");
    assert.deepEqual(await listed(engine), all);
    const lists = (): number => engine.files.count("list", SHARDS);
    const before = lists();
    assert.deepEqual(await engine.storage.streamList.names({ from: "s05\0", to: null }, 3), ["s06", "s07", "s08"]);
    assert.ok(lists() > before);
    assert.equal(await engine.storage.streamList.matching(["s*"]), null);
  });

  test("are too many from the start after a restart, and several ask at a time", async (t) => {
    const engine = await openEngine();
    for (const name of all) await created(engine.storage, name, "x");
    const next = await reopen(engine, FEW);
    t.after(() => next.storage.close());
    const pages = await Promise.all(
      [0, 10, 20].map((at) => next.storage.streamList.names({ from: all[at] ?? "", to: all[at + 12] ?? null }, 10)),
    );
    assert.deepEqual(pages, [all.slice(0, 10), all.slice(10, 20), all.slice(20, 30)]);
    assert.deepEqual(await next.storage.streamList.names({ from: all[3] ?? "", to: all[5] ?? "" }, 10), all.slice(3, 5));
    await created(next.storage, "t");
    assert.deepEqual(await listed(next), [...all, "t"]);
  });

  test("are looked for by some, one after the other, and refused to more at a time", async (t) => {
    const engine = await openEngine(FEW);
    t.after(() => engine.storage.close());
    assert.deepEqual(await listed(engine), []);
    for (const name of all) await created(engine.storage, name, "x");
    const disk = new Barrier();
    engine.files.gate = ({ kind, path }) => (kind === "list" && ALL_SHARDS.test(path) ? disk.opened : undefined);
    const before = engine.files.count("list", ALL_SHARDS);
    const asked = Array.from({ length: 20 }, () => listed(engine));
    const refusals = asked.slice(17).map((names) => assert.rejects(names, StorageBusyError));
    await Promise.all(refusals);
    disk.open();
    for (const names of await Promise.all(asked.slice(0, 17))) assert.deepEqual(names, all);
    assert.equal(engine.files.count("list", ALL_SHARDS), before + 17);
    assert.deepEqual(await listed(engine), all);
  });
});

test("names that patterns match are known once all names are read, and follow what is made and deleted", async (t) => {
  const { engine } = await ended();
  const next = await reopen(engine);
  t.after(() => next.storage.close());
  const { streamList } = next.storage;
  const disk = new Barrier();
  next.files.gate = ({ kind, path }) => (kind === "list" && SHARDS.test(path) ? disk.opened : undefined);
  assert.equal(await streamList.matching(["a/*"]), null);
  disk.open();
  await next.files.idle();
  const source = { range: namesBeginningWith("a/"), pattern: "a/*" };
  const matching = await streamList.matching(["a/*"]);
  assert.deepEqual(matching?.slice(source, ALL_NAMES, 10), ["a/b"]);
  for (const name of ["a/c", "a/c/d"]) await created(next.storage, name);
  await remove(next.storage, await loaded(next.storage, "a/b"));
  assert.deepEqual(matching?.slice(source, ALL_NAMES, 10), ["a/c"]);
});

test("after a kill the names are those of files and journal", async (t) => {
  const first = await openEngine();
  for (const name of NAMES) await created(first.storage, name, "x");
  const second = await crashAndRecover(first);
  t.after(() => second.storage.close());
  assert.deepEqual(await listed(second), ORDERED);
});
