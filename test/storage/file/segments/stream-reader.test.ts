import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { DeletedStreamError, TrimmedStreamError, type StoredStream } from "../../../../src/storage/storage.js";
import {
  append,
  bytesOf,
  changeSidecar,
  created,
  forked,
  loaded,
  openEngine,
  readAll,
  remove,
  reopen,
  settled,
  type Engine,
} from "../../../helpers/engine.js";
import { crc32 } from "../../../../src/storage/file/format/crc32.js";
import { fileIn } from "../../../helpers/spoilt-files.js";
import { Barrier } from "../../../helpers/watched-files.js";
import { trimBefore } from "../../../helpers/trim.js";

/** A stream and a fork of it that shares its 100 bytes, neither of which is in memory. */
async function sourceAndFork(t: TestContext): Promise<{ engine: Engine; source: StoredStream; fork: StoredStream }> {
  const first = await openEngine();
  await forked(first.storage, await created(first.storage, "source", bytesOf(100)), "fork");
  const engine = await reopen(first);
  t.after(() => engine.storage.close());
  const fork = await loaded(engine.storage, "fork");
  return { engine, fork, source: await loaded(engine.storage, "source") };
}

/** Deletes the fork, and the bytes that were kept for it. */
async function dropShared({ storage, files }: Engine, source: StoredStream, fork: StoredStream): Promise<void> {
  assert.equal(await remove(storage, fork), "durable");
  trimBefore(storage, source, 100);
  await settled(storage, source);
  await files.idle();
}

describe("a read of what a fork shares", () => {
  test("gives the source's bytes, up to the fork point", async (t) => {
    const { engine, fork } = await sourceAndFork(t);
    assert.deepEqual(await readAll(engine.storage, fork, 0, 30), bytesOf(100));
  });

  test("says that the fork is gone, not that the source begins later", async (t) => {
    const { engine, source, fork } = await sourceAndFork(t);
    await dropShared(engine, source, fork);
    assert.throws(() => engine.storage.read(fork, 0, 10), DeletedStreamError);
    assert.throws(() => engine.storage.read(source, 0, 10), TrimmedStreamError);
  });

  test("says so too when it had begun before", async (t) => {
    const { engine, source, fork } = await sourceAndFork(t);
    const disk = new Barrier();
    engine.files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".seg") ? disk.opened : undefined);
    const read = engine.storage.read(fork, 0, 10);
    await dropShared(engine, source, fork);
    disk.open();
    await assert.rejects(async () => read, DeletedStreamError);
  });

  test("says where the fork begins by then, not where the source does", async (t) => {
    const first = await openEngine();
    const shared = await created(first.storage, "source", bytesOf(100));
    await forked(first.storage, shared, "fork", 100, bytesOf(5000, 1));
    for (const size of [5000, 5000]) await append(first.storage, shared, bytesOf(size));
    const engine = await reopen(first);
    t.after(() => engine.storage.close());
    const { storage, files } = engine;
    const [fork, source] = [await loaded(storage, "fork"), await loaded(storage, "source")];
    const disk = new Barrier();
    files.gate = ({ kind, path }) => (kind === "open" && path.endsWith(".seg") ? disk.opened : undefined);
    const read = storage.read(fork, 0, 10);
    for (const [stream, before] of [
      [fork, 100],
      [source, 5100],
    ] as const) {
      trimBefore(storage, stream, before);
      await settled(storage, stream);
    }
    await files.idle();
    disk.open();
    assert.deepEqual([fork.earliest, source.earliest], [100, 5100]);
    await assert.rejects(
      async () => read,
      (error) => error instanceof TrimmedStreamError && error.stream === fork,
    );
  });

  test("says that the source is damaged where that ends before: it had those bytes once", async () => {
    const first = await openEngine();
    await forked(first.storage, await created(first.storage, "source", bytesOf(100)), "fork");
    await first.storage.close();
    changeSidecar(fileIn(first.dir, "source/meta.json"), ({ state, segments: [segment] }) => {
      state.tail = 40;
      return { state, segments: segment === undefined ? [] : [{ ...segment, length: 40, crc: crc32(bytesOf(100).subarray(0, 40)) }] };
    });
    const { storage } = await openEngine({ dir: first.dir });
    const fork = await loaded(storage, "fork");
    assert.deepEqual(await storage.read(fork, 0, 100), bytesOf(100).subarray(0, 40));
    assert.throws(() => storage.read(fork, 40, 10), /it ends at 40, but its fork "fork" shares bytes behind that/);
    await storage.close();
  });

  test("says that the source is damaged where that begins later", async () => {
    const first = await openEngine();
    await forked(first.storage, await created(first.storage, "source", bytesOf(100)), "fork");
    await first.storage.close();
    changeSidecar(fileIn(first.dir, "source/meta.json"), ({ earliest, segments: [segment] }) => ({
      earliest: { ...earliest, position: 40 },
      segments: segment === undefined ? [] : [{ ...segment, start: 40, length: 60 }],
    }));
    const { storage } = await openEngine({ dir: first.dir });
    const fork = await loaded(storage, "fork");
    assert.throws(() => storage.read(fork, 0, 10), /it begins at 40, but its fork "fork" shares bytes before that/);
    await storage.close();
  });
});
