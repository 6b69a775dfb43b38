import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { append, bytesOf, created, loaded, openEngine, openFor, readAll, type Engine } from "../../helpers/engine.js";
import { Barrier, diskError, failing, JOURNAL, SEGMENT, WatchedFiles, type Gate } from "../../helpers/watched-files.js";

const SPARE = /\.journal\.spare$/;

describe("a clean end that fails", () => {
  /** How many files of the journal, and segments, were opened and not closed. */
  function openFiles({ files }: Pick<Engine, "files">): number[] {
    return [JOURNAL, SEGMENT].map((path) => files.count("open", path) - files.count("close", path));
  }

  for (const [what, gate] of [
    ["a file of the journal can't be removed", failing("EIO", ["unlink"], SPARE)],
    ["a file of the journal can't be closed", failing("EIO", ["close"], JOURNAL)],
    ["a segment can't be closed", failing("EIO", ["close"], SEGMENT)],
  ] as const satisfies readonly (readonly [string, Gate])[])
    test(`closes all files and gives the directory back where ${what}`, async (t) => {
      const engine = await openEngine();
      await created(engine.storage, "s", "kept");
      const grown = await created(engine.storage, "grown");
      // More than one file of the journal takes.
      for (let index = 0; index < 60; index += 1) await append(engine.storage, grown, bytesOf(1500, index));
      await engine.files.idle();
      engine.files.gate = gate;
      await assert.rejects(engine.storage.close(), { code: "EIO" });
      assert.deepEqual(openFiles(engine), [0, 0]);
      assert.ok(!existsSync(join(engine.dir, "lock")));
      const again = await openFor(t, { dir: engine.dir });
      assert.equal((await readAll(again.storage, await loaded(again.storage, "s"))).toString(), "kept");
    });

  test("closes all files where a start fails once the journal is open", async (t) => {
    const engine = await openEngine();
    await created(engine.storage, "s", "kept");
    await engine.storage.close();
    const files = new WatchedFiles();
    const fault = failing("EIO", ["list"], /trash$/);
    files.gate = (operation) => {
      const error = fault(operation);
      if (error !== undefined) files.gate = failing("ENOSPC", ["close"], JOURNAL);
      return error;
    };
    await assert.rejects(openEngine({ dir: engine.dir, files }), { name: "DirectoryError", message: /EIO/ });
    assert.ok(files.count("open", JOURNAL) > 0);
    assert.deepEqual(openFiles({ files }), [0, 0]);
    const again = await openFor(t, { dir: engine.dir });
    assert.equal((await readAll(again.storage, await loaded(again.storage, "s"))).toString(), "kept");
  });

  test("waits for what is on its way to the disk before it gives the directory back", async () => {
    const engine = await openEngine();
    const stream = await created(engine.storage, "s", "kept");
    const disk = new Barrier();
    engine.files.gate = ({ kind, path }) => {
      if (kind === "writeThen") return disk.opened;
      return kind === "sync" && SEGMENT.test(path) ? diskError("EIO") : undefined;
    };
    const late = append(engine.storage, stream, "late");
    await engine.files.idle();
    await assert.rejects(engine.storage.persist(stream), { code: "EIO" });
    const closed = engine.storage.close();
    await engine.files.idle();
    assert.ok(existsSync(join(engine.dir, "lock")));
    disk.open();
    assert.equal(await late, "durable");
    await closed;
    assert.ok(!existsSync(join(engine.dir, "lock")));
  });
});
