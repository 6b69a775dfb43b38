import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { Layout } from "../../../src/storage/file/format/layout.js";
import { verifyDirectory } from "../../../src/storage/file/offline/verify.js";
import { crash, crashAndRecover, created, loaded, openEngine, remove, reopen, type Engine } from "../../helpers/engine.js";
import { Barrier, failing } from "../../helpers/watched-files.js";

const SAVES = { savedNamesFrom: 3 };
const NAMES = ["a", "a/b", "x".repeat(1000), "Ä/ö", "𝄞", "z"];
const ORDERED = [...NAMES].sort();
/** What lists the directories that hold those of streams. */
const SHARDS = /streams(.[0-9a-f]{2})?$/;

function listed({ storage }: Engine): Promise<readonly string[]> {
  return storage.streamList.names("", 10_000);
}

/** An engine that ended with its names saved. */
async function ended(): Promise<{ readonly engine: Engine; readonly saved: string }> {
  const engine = await openEngine(SAVES);
  for (const name of NAMES) await created(engine.storage, name, "x");
  assert.deepEqual(await listed(engine), ORDERED);
  await engine.storage.close();
  const saved = new Layout(engine.dir).names;
  assert.ok(existsSync(saved));
  return { engine, saved };
}

describe("names that a clean end saved", () => {
  test("are the first list after the next start, which waits for no directory", async (t) => {
    const { engine, saved } = await ended();
    const next = await reopen(engine, SAVES);
    t.after(() => next.storage.close());
    const disk = new Barrier();
    next.files.gate = ({ kind, path }) => (kind === "list" && SHARDS.test(path) ? disk.opened : undefined);
    assert.deepEqual(await listed(next), ORDERED);
    assert.ok(!existsSync(saved));
    await created(next.storage, "new");
    disk.open();
    await remove(next.storage, await loaded(next.storage, "z"));
    const expected = [...ORDERED.filter((name) => name !== "z"), "new"].sort();
    assert.deepEqual(await listed(next), expected);
    await next.files.idle();
    assert.deepEqual(await listed(next), expected);
  });

  test("are compared with the directories, which somebody may have changed", async (t) => {
    const { engine } = await ended();
    const layout = new Layout(engine.dir);
    const elsewhere = `${layout.streamDirectory("a")}.moved`;
    renameSync(layout.streamDirectory("a"), elsewhere);
    const without = await reopen(engine, SAVES);
    assert.deepEqual(await listed(without), ORDERED);
    await without.files.idle();
    const rest = [...ORDERED.filter((name) => name !== "a"), "a.moved"].sort();
    assert.deepEqual(await listed(without), rest);
    await without.storage.close();
    renameSync(elsewhere, layout.streamDirectory("a"));
    const again = await openEngine({ ...SAVES, dir: engine.dir });
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
    const next = await openEngine({ ...SAVES, dir: engine.dir });
    t.after(() => next.storage.close());
    assert.deepEqual(await listed(next), [...ORDERED, "new"].sort());
  });

  test("count for nothing after a kill, even if they were still there", async (t) => {
    const { engine, saved } = await ended();
    const bytes = readFileSync(saved);
    const killed = await reopen(engine, SAVES);
    await listed(killed);
    await created(killed.storage, "new");
    const dir = await crash(killed);
    // The removal was not permanent.
    writeFileSync(new Layout(dir).names, bytes);
    const next = await openEngine({ ...SAVES, dir });
    t.after(() => next.storage.close());
    assert.deepEqual(await listed(next), [...ORDERED, "new"].sort());
  });

  test("count for nothing where they are asked for after the first change", async (t) => {
    const { engine } = await ended();
    const next = await reopen(engine, SAVES);
    t.after(() => next.storage.close());
    await created(next.storage, "new");
    assert.deepEqual(await listed(next), [...ORDERED, "new"].sort());
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
      const next = await reopen(engine, SAVES);
      t.after(() => next.storage.close());
      assert.deepEqual(await listed(next), ORDERED);
      assert.ok(!existsSync(saved));
    });
  }

  test("that can't be read or written cost nothing but time", async (t) => {
    const { engine, saved } = await ended();
    const next = await reopen(engine, SAVES);
    next.files.gate = failing("EIO", ["open", "read"], /names(\.new)?$/);
    assert.deepEqual(await listed(next), ORDERED);
    await next.storage.close();
    assert.deepEqual(next.faults, []);
    rmSync(saved);
    const last = await openEngine({ ...SAVES, dir: engine.dir });
    t.after(() => last.storage.close());
    assert.deepEqual(await listed(last), ORDERED);
  });

  test("are streamdir's own file to verify, and none of a small directory", async () => {
    const { engine, saved } = await ended();
    const directory = { files: engine.files, layout: new Layout(engine.dir), directoryId: Buffer.alloc(8) };
    const { notes } = await verifyDirectory({ ...directory, report: () => {}, progress: () => {} });
    assert.deepEqual(notes, []);
    rmSync(saved);
    const next = await reopen(engine);
    await listed(next);
    await next.storage.close();
    assert.ok(!existsSync(join(dirname(saved), "names")));
  });
});

test("after a kill the names are those of files and journal", async (t) => {
  const first = await openEngine(SAVES);
  for (const name of NAMES) await created(first.storage, name, "x");
  const second = await crashAndRecover(first, SAVES);
  t.after(() => second.storage.close());
  assert.deepEqual(await listed(second), ORDERED);
});
