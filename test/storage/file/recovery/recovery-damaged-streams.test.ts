import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { DamagedStreamError } from "../../../../src/storage/storage.js";
import { Layout, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import {
  append,
  assertBytes,
  bytesOf,
  crash,
  created,
  loaded,
  openEngine,
  openFor,
  readAll,
  remove,
  reopen,
} from "../../../helpers/engine.js";
import { turnByte } from "../../../helpers/spoilt-files.js";

describe("damaged streams", () => {
  /** A directory with three streams that are in their own files, closed in good order. */
  async function closedDirectory(): Promise<string> {
    const engine = await openEngine();
    for (const name of ["bad", "good", "fine"]) await created(engine.storage, name, bytesOf(3000));
    await engine.storage.close();
    return engine.dir;
  }

  async function assertOnlyBadFails(dir: string, file: string, problem: RegExp): Promise<void> {
    const engine = await openEngine({ dir });
    await assert.rejects(
      async () => readAll(engine.storage, await loaded(engine.storage, "bad")),
      (error: unknown) => {
        assert.ok(error instanceof DamagedStreamError, String(error));
        assert.equal(error.stream, "bad");
        assert.equal(error.file, file);
        assert.match(error.message, problem);
        return true;
      },
    );
    for (const name of ["good", "fine"]) await assertBytes(engine, name, bytesOf(3000));
    await engine.storage.close();
  }

  test("a segment that is too short is named, and the others serve", async () => {
    const dir = await closedDirectory();
    const segment = segmentPath(new Layout(dir).streamDirectory("bad"), 0);
    truncateSync(segment, 2999);
    await assertOnlyBadFails(dir, segment, /./);
  });

  test("a segment that is missing is named, and the others serve", async () => {
    const dir = await closedDirectory();
    const segment = segmentPath(new Layout(dir).streamDirectory("bad"), 0);
    rmSync(segment);
    await assertOnlyBadFails(dir, segment, /it is missing/);
  });

  test("a sidecar that is missing is named, and the others serve", async () => {
    const dir = await closedDirectory();
    const sidecar = sidecarPath(new Layout(dir).streamDirectory("bad"));
    rmSync(sidecar);
    await assertOnlyBadFails(dir, sidecar, /it is missing/);
  });

  test("a sidecar with a flipped bit is named, and the others serve", async () => {
    const dir = await closedDirectory();
    const sidecar = sidecarPath(new Layout(dir).streamDirectory("bad"));
    turnByte(sidecar, 60);
    await assertOnlyBadFails(dir, sidecar, /./);
  });

  test("a sidecar of another stream is named, and the others serve", async () => {
    const dir = await closedDirectory();
    const layout = new Layout(dir);
    const sidecar = sidecarPath(layout.streamDirectory("bad"));
    writeFileSync(sidecar, readFileSync(sidecarPath(layout.streamDirectory("good"))));
    await assertOnlyBadFails(dir, sidecar, /it is that of "good"/);
  });

  test("a flipped bit in a large payload that only its segment holds is found before it is served", async (t) => {
    for (const place of [0, 4000, 8999]) {
      const engine = await openEngine();
      await append(engine.storage, await created(engine.storage, "bad", bytesOf(4500)), bytesOf(4500, 1));
      const left = await crash(engine);
      const directory = new Layout(left).streamDirectory("bad");
      turnByte(segmentPath(directory, place < 4500 ? 0 : 4500), place % 4500);
      const again = await openFor(t, { dir: left });
      await assert.rejects(async () => readAll(again.storage, await loaded(again.storage, "bad")), DamagedStreamError);
    }
  });

  for (const [what, before] of [
    ["was made in the journal", []],
    ["has the name of one that the journal deletes", [bytesOf(4500, 7)]],
  ] as const)
    test(`a missing sidecar costs nothing of the large payloads of a stream that ${what}`, async (t) => {
      const engine = await openEngine();
      for (const payload of before) assert.equal(await remove(engine.storage, await created(engine.storage, "bad", payload)), "durable");
      await engine.files.idle();
      await append(engine.storage, await created(engine.storage, "bad", "first,"), bytesOf(4500, 1));
      const left = await crash(engine);
      rmSync(sidecarPath(new Layout(left).streamDirectory("bad")));
      const expected = Buffer.concat([Buffer.from("first,"), bytesOf(4500, 1)]);
      const again = await openEngine({ dir: left });
      await assertBytes(again, "bad", expected);
      assert.equal(await append(again.storage, await loaded(again.storage, "bad"), "last"), "durable");
      const third = await reopen(again);
      t.after(() => third.storage.close());
      await assertBytes(third, "bad", Buffer.concat([expected, Buffer.from("last")]));
    });

  test("a large payload that is gone with its sidecar is found before others are served in its place", async (t) => {
    const engine = await openEngine();
    await created(engine.storage, "bad", bytesOf(4500, 1));
    const left = await crash(engine);
    const directory = new Layout(left).streamDirectory("bad");
    rmSync(sidecarPath(directory));
    writeFileSync(segmentPath(directory, 0), bytesOf(4500, 2));
    const again = await openFor(t, { dir: left });
    await assert.rejects(async () => readAll(again.storage, await loaded(again.storage, "bad")), DamagedStreamError);
  });

  for (const [problem, harm] of [
    ["a missing sidecar", (path: string) => rmSync(path)],
    ["a damaged sidecar", (path: string) => turnByte(path, 100)],
  ] as const) {
    test(`${problem} of a stream in the journal is told, its records are kept, and the others serve`, async (t) => {
      const dir = await closedDirectory();
      const engine = await openEngine({ dir });
      for (const name of ["bad", "good"]) await append(engine.storage, await loaded(engine.storage, name), "more");
      const left = await crash(engine);
      harm(sidecarPath(new Layout(left).streamDirectory("bad")));
      const again = await openFor(t, { dir: left });
      await assert.rejects(again.storage.load("bad"), (error: unknown) => error instanceof DamagedStreamError && error.stream === "bad");
      await assertBytes(again, "good", Buffer.concat([bytesOf(3000), Buffer.from("more")]));
      await again.files.idle();
      assert.ok(again.log.some(({ level, message }) => level === "error" && message === "a stream is damaged"));
      assert.equal(readdirSync(join(left, "journal")).filter((name) => name.endsWith(".kept")).length, 1, "its records are kept");
      await assert.rejects(again.storage.load("bad"), DamagedStreamError);
    });
  }

  test("a journal that goes on behind the stream's end is damage of that stream only", async (t) => {
    const dir = await closedDirectory();
    const old = readFileSync(sidecarPath(new Layout(dir).streamDirectory("bad")));
    const engine = await openEngine({ dir });
    for (const name of ["bad", "good"]) await append(engine.storage, await loaded(engine.storage, name), "more");
    const second = await reopen(engine);
    for (const name of ["bad", "good"]) await append(second.storage, await loaded(second.storage, name), "!");
    const left = await crash(second);
    writeFileSync(sidecarPath(new Layout(left).streamDirectory("bad")), old);
    const again = await openFor(t, { dir: left });
    await assert.rejects(again.storage.load("bad"), (error: unknown) => error instanceof DamagedStreamError && /3004/.test(error.message));
    await assertBytes(again, "good", Buffer.concat([bytesOf(3000), Buffer.from("more!")]));
  });
});
