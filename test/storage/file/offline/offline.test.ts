import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { DirectoryError } from "../../../../src/storage/file/directory/lock.js";
import { openOffline } from "../../../../src/storage/file/offline/offline.js";
import { openEngine } from "../../../helpers/engine.js";
import { tempDir } from "../../../helpers/temp-dir.js";

test("a directory that nobody has open is given with its id", async () => {
  const { dir, storage } = await openEngine();
  await storage.close();
  const { layout, directoryId } = await openOffline(dir, false);
  assert.equal(layout.root, dir);
  assert.equal(directoryId.length, 8);
});

test("a directory that a server has open is refused, naming its process", async () => {
  const { dir, storage } = await openEngine();
  await assert.rejects(
    openOffline(dir, false),
    (error: unknown) => error instanceof DirectoryError && error.message.includes(`process ${process.pid} `),
  );
  await storage.close();
});

test("a directory that another host has locked is given by force only, and its lock stays", async () => {
  const { dir, storage } = await openEngine();
  await storage.close();
  writeFileSync(`${dir}/lock`, JSON.stringify({ pid: 1, host: "elsewhere", startedAt: null }));
  await assert.rejects(openOffline(dir, false), /process 1 on elsewhere/);
  assert.equal((await openOffline(dir, true)).layout.root, dir);
  assert.ok(existsSync(`${dir}/lock`));
});

test("a directory that was opened and closed since is refused once it was looked at", async () => {
  const { dir, storage } = await openEngine();
  await storage.close();
  const { assertUntouched } = await openOffline(dir, false);
  await assertUntouched();
  await (await openEngine({ dir })).storage.close();
  await assert.rejects(assertUntouched(), { message: `${dir} was opened meanwhile: run it again` });
});

test("a directory without a marker is refused", async () => {
  await assert.rejects(openOffline(tempDir(), false), /is not a data directory of streamdir/);
});

test("a file in the place of the directory is refused in one line", async () => {
  const path = `${tempDir()}/file`;
  writeFileSync(path, "");
  await assert.rejects(openOffline(path, false), (error: unknown) => error instanceof DirectoryError && !error.message.includes("\n"));
});
