import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { withFileLock } from "../../../src/ops/lock/file-lock.js";
import { replaceFile, WatchedFile } from "../../../src/ops/watched-file.js";
import { lacksProc } from "../../helpers/platform.js";
import { startNode } from "../../helpers/process.js";
import { tempDir } from "../../helpers/temp-dir.js";

/** More than a process id can be. */
const NO_PROCESS = 2 ** 30;

describe("the lock of a file", () => {
  test("lets one change after another be made", async () => {
    const path = join(tempDir(), "count");
    await replaceFile(path, "0");
    const addOne = () => withFileLock(path, async () => replaceFile(path, String(Number(await WatchedFile.read(path, 9)) + 1)));
    await Promise.all(Array.from({ length: 5 }, addOne));
    assert.equal(readFileSync(path, "utf8"), "5");
    assert.equal(existsSync(`${path}.lock`), false);
  });

  test("is gone after a change that failed", async () => {
    const path = join(tempDir(), "a.json");
    await assert.rejects(
      withFileLock(path, () => Promise.reject(new Error("no"))),
      /no/,
    );
    assert.equal(existsSync(`${path}.lock`), false);
  });

  test("that was removed meanwhile is not missed, and another's in its place stays", async () => {
    const path = join(tempDir(), "a.json");
    const removed = await withFileLock(path, async () => {
      rmSync(`${path}.lock`);
      return "done";
    });
    assert.equal(removed, "done");
    await withFileLock(path, async () => {
      rmSync(`${path}.lock`);
      await withFileLock(path, () => Promise.resolve());
      writeFileSync(`${path}.lock`, "another's");
    });
    assert.equal(readFileSync(`${path}.lock`, "utf8"), "another's");
  });

  test("that a killed process left is taken over, by one of many at a time", async (t) => {
    const path = join(tempDir(), "count");
    await replaceFile(path, "0");
    const from = import.meta.resolve("../../../src/ops/lock/file-lock.ts");
    const code = `const { withFileLock } = await import(${JSON.stringify(from)});
      await withFileLock(${JSON.stringify(path)}, () => { console.log("held"); return new Promise(() => setInterval(() => {}, 9e5)); });`;
    const holder = startNode(t, ["--import", import.meta.resolve("tsx"), "--input-type=module", "-e", code]);
    await holder.stdoutLine(/held/);
    // While it lives it keeps it.
    await assert.rejects(
      withFileLock(path, () => Promise.resolve(), 0),
      /another command changes the file/,
    );
    holder.kill("SIGKILL");
    await holder.ended;
    let inside = 0;
    const addOne = () =>
      withFileLock(path, async () => {
        assert.equal((inside += 1), 1);
        await replaceFile(path, String(Number(await WatchedFile.read(path, 9)) + 1));
        inside -= 1;
      });
    await Promise.all(Array.from({ length: 20 }, addOne));
    assert.equal(readFileSync(path, "utf8"), "20");
    assert.deepEqual(readdirSync(join(path, "..")), ["count"]);
  });

  test("of another machine, or of a process that can't be told from a living one, is not taken over", { skip: lacksProc }, async () => {
    const path = join(tempDir(), "a.json");
    let held = "";
    await withFileLock(path, async () => (held = await WatchedFile.read(`${path}.lock`, 999)));
    const holder = JSON.parse(held);
    for (const other of [
      { ...holder, host: "another" },
      { ...holder, startedAt: null },
      { ...holder, pidNamespace: "pid:[1]" },
      { ...holder, id: "../x" },
      // Where its process id counts is not told: that there is none of that id here says nothing.
      { ...holder, pidNamespace: null, pid: NO_PROCESS },
    ]) {
      writeFileSync(`${path}.lock`, JSON.stringify(other));
      await assert.rejects(
        withFileLock(path, () => Promise.resolve(), 0),
        /remove .*a\.json\.lock/,
      );
    }
    // The process id was given to another process.
    writeFileSync(`${path}.lock`, JSON.stringify({ ...holder, startedAt: `${holder.startedAt}0` }));
    await withFileLock(path, () => Promise.resolve(), 0);
  });

  test("that is empty, as older versions left it, is named, with what to do", async () => {
    const path = join(tempDir(), "a.json");
    writeFileSync(`${path}.lock`, "");
    await assert.rejects(
      withFileLock(path, () => Promise.resolve(), 0),
      /if none runs, remove .*a\.json\.lock/,
    );
  });
});
