import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Layout, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { decodeSidecar, encodeNotice, isNotice } from "../../../../src/storage/file/format/sidecar.js";
import { forksOnDisk } from "../../../../src/storage/file/writing/forks-on-disk.js";
import { StorageBusyError } from "../../../../src/storage/storage.js";
import { created, forked, openEngine } from "../../../helpers/engine.js";
import { diskError, failing, WatchedFiles } from "../../../helpers/watched-files.js";

/** What finds forks in a directory in which `so"urce` has two, and another stream has one. */
async function withForks(vacating: string | null = null): Promise<{ find: () => Promise<string[]>; files: WatchedFiles; dir: string }> {
  const { storage, dir } = await openEngine();
  const source = await created(storage, 'so"urce', "shared");
  for (const name of ["one", "two"]) await forked(storage, source, name);
  await forked(storage, await created(storage, "other", "shared"), "three");
  await storage.close();
  const files = new WatchedFiles();
  const trash = { isVacating: (name: string): boolean => name === vacating };
  const find = async (): Promise<string[]> => {
    const { names, mayHaveMore } = await forksOnDisk({ files, layout: new Layout(dir), trash }, 'so"urce');
    return [...names, ...(mayHaveMore ? ["perhaps more"] : [])].sort();
  };
  return { find, files, dir };
}

test("forks are found by what their sidecars say, but for those that are deleted", async () => {
  assert.deepEqual(await (await withForks()).find(), ["one", "two"]);
  assert.deepEqual(await (await withForks("one")).find(), ["two"]);
});

test("forks are found by what stands in the place of their sidecars where their records could not be applied", async () => {
  const { find, dir } = await withForks();
  const path = sidecarPath(new Layout(dir).streamDirectory("one"));
  const read = decodeSidecar(readFileSync(path));
  assert.ok(read.kind === "sound");
  writeFileSync(path, encodeNotice(read.sidecar, "its files could not be written"));
  assert.ok(isNotice(readFileSync(path)));
  assert.deepEqual(await find(), ["one", "two"]);
});

test("a sidecar that can't be read may be a fork's, one that can't be opened now is a reason to ask again", async () => {
  const { find, files } = await withForks();
  files.gate = failing("EIO", ["read"], /one.meta\.json$/);
  assert.deepEqual(await find(), ["perhaps more", "two"]);
  files.gate = failing("EMFILE", ["open"], /one.meta\.json$/);
  await assert.rejects(find(), StorageBusyError);
});

test("a directory that can't be listed is a reason to ask again, what is none has no forks", async () => {
  const { find, files, dir } = await withForks();
  mkdirSync(join(dir, "streams", "lost+found"));
  files.gate = failing("EACCES", ["list"], /lost.found$/);
  assert.deepEqual(await find(), ["one", "two"]);
  for (const code of ["EIO", "EACCES"]) {
    files.gate = failing(code, ["list"], /streams.[0-9a-f]{2}$/);
    await assert.rejects(find(), StorageBusyError, code);
  }
  files.gate = ({ kind }) => (kind === "list" ? diskError("ENOTDIR") : undefined);
  assert.deepEqual(await find(), []);
});
