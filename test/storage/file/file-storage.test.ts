import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { systemFiles } from "../../../src/storage/file/disk/files.js";
import { Layout } from "../../../src/storage/file/format/layout.js";
import { DamagedStreamError } from "../../../src/storage/storage.js";
import { storageContract } from "../../contract/storage.contract.js";
import {
  bytesOf,
  crash,
  crashAndRecover,
  created,
  loaded,
  makeEngine,
  openEngine,
  readAll,
  remove,
  reopen,
  type Engine,
} from "../../helpers/engine.js";
import { Barrier, WatchedFiles } from "../../helpers/watched-files.js";

storageContract("FileStorage", async (t) => {
  let engine: Engine = await openEngine();
  t.after(() => engine.storage.close());
  return {
    storage: engine.storage,
    restart: async () => {
      engine = await reopen(engine);
      return engine.storage;
    },
  };
});

/** Names whose directories are in the same shard. */
function neighbours(count: number): string[] {
  const layout = new Layout("/");
  const shard = layout.shard(layout.streamDirectory("name"));
  const names: string[] = [];
  for (let index = 0; names.length < count; index += 1)
    if (layout.shard(layout.streamDirectory(`name-${index}`)) === shard) names.push(`name-${index}`);
  return names;
}

test("a stream that only the journal has is not taken for a free name, while it waits to be opened and while it is", async (t) => {
  const [nobody = "", ...names] = neighbours(20);
  const first = await openEngine();
  for (const name of names) await created(first.storage, name, "x");
  // Listings take no time: what comes after one is done before anything else.
  const inner = { ...systemFiles(false), list: (path: string) => Promise.resolve(existsSync(path) ? readdirSync(path) : []) };
  const unopened = makeEngine({ dir: await crash(first), files: new WatchedFiles(inner) });
  // The first to list the shard is who opens the streams, behind the start.
  const listed = new Barrier();
  let listings = 0;
  unopened.files.gate = ({ kind, path }) =>
    kind === "list" && /streams.[0-9a-f]{2}$/.test(path) && (listings += 1) === 1 ? listed.opened : undefined;
  const second = await unopened.open();
  t.after(() => second.storage.close());
  assert.equal(await second.storage.load(nobody), null);
  assert.ok(listings >= 2);
  assert.deepEqual(
    names.filter((name) => second.storage.lacks(name)),
    [],
  );
  assert.equal(second.storage.lacks(nobody), true);
  listed.open();
  for (let step = 0; step < 100; step += 1) {
    assert.deepEqual(
      names.filter((name) => second.storage.lacks(name)),
      [],
      `step ${step}`,
    );
    await null;
  }
  for (const name of names) assert.equal((await loaded(second.storage, name)).state.tail, 1);
});

test("a stream deleted while it is read is no damage", async (t) => {
  const engine = await openEngine();
  await created(engine.storage, "s", bytesOf(3000));
  const again = await reopen(engine);
  t.after(() => again.storage.close());
  const stream = await loaded(again.storage, "s");
  await remove(again.storage, stream);
  await again.files.idle();
  await assert.rejects(
    async () => readAll(again.storage, stream),
    (error: unknown) => !(error instanceof DamagedStreamError),
  );
});

test("the list has each stream once, those of the journal alone too, and also while they get their files", async (t) => {
  const first = await openEngine();
  const names = Array.from({ length: 300 }, (_, index) => `s${index}`);
  for (const name of names.slice(0, 150)) await created(first.storage, name, "x");
  // After a crash the journal has all of them, and nothing else.
  const { storage, clock, files } = await crashAndRecover(first);
  t.after(() => storage.close());
  for (const name of names.slice(150)) await created(storage, name, "x");
  const gone = await created(storage, "gone", "x");
  await remove(storage, gone);
  const found: string[] = [];
  const whole = (async () => {
    for await (const { name, isExcess } of storage.list()) {
      found.push(name);
      assert.deepEqual(
        [await isExcess({ maxBytes: 0, maxAgeMs: Infinity }, 0), await isExcess({ maxBytes: 1, maxAgeMs: Infinity }, 0)],
        [true, false],
      );
      const stream = await storage.load(name);
      if (stream !== null) await storage.persist(stream);
    }
  })();
  for (let isOver = false; !isOver;) {
    await files.idle();
    clock.advance(10);
    isOver = await Promise.race([whole.then(() => true), files.idle().then(() => false)]);
  }
  assert.deepEqual(found.toSorted(), names.toSorted());
});
