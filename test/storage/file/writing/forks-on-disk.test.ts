import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { EngineState } from "../../../../src/storage/file/disk/engine-state.js";
import { coveredSidecarPath, Layout, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { decodeSidecar, encodeNotice, encodeRefusal, isNotice } from "../../../../src/storage/file/format/sidecar.js";
import { ForkSearch } from "../../../../src/storage/file/writing/forks-on-disk.js";
import { StorageBusyError } from "../../../../src/storage/storage.js";
import { created, forked, keptLog, openEngine } from "../../../helpers/engine.js";
import { ManualClock } from "../../../helpers/manual-clock.js";
import { diskError, failing, WatchedFiles } from "../../../helpers/watched-files.js";

interface Searched {
  readonly find: (source?: string) => Promise<string[]>;
  readonly files: WatchedFiles;
  readonly dir: string;
  readonly state: EngineState;
  /** Streams in memory. */
  readonly known: Set<string>;
}

/** What finds forks in a directory in which `so"urce` has two, and another stream has one. */
async function withForks(vacating: string | null = null): Promise<Searched> {
  const { storage, dir } = await openEngine();
  const source = await created(storage, 'so"urce', "shared");
  for (const name of ["one", "two"]) await forked(storage, source, name);
  await forked(storage, await created(storage, "other", "shared"), "three");
  await storage.close();
  const files = new WatchedFiles();
  const trash = { isVacating: (name: string): boolean => name === vacating };
  const state = new EngineState({ clock: new ManualClock(), log: keptLog().log }, () => undefined);
  const known = new Set<string>();
  const search = new ForkSearch({ files, layout: new Layout(dir), trash, state, isKnown: (name) => known.has(name) });
  const find = async (name = 'so"urce'): Promise<string[]> => {
    const { names, isSource, unread, silent } = await search.forksOf(name);
    const more = [unread === null ? [] : ["perhaps more"], silent === null ? [] : ["or one that its list has"]].flat();
    return [...names, ...more, ...(isSource === true ? [] : [`it lists ${isSource === null ? "who knows" : "none"}`])].sort();
  };
  return { find, files, dir, state, known };
}

test("forks are found by what their sidecars say, but for those that are deleted", async () => {
  assert.deepEqual(await (await withForks()).find(), ["one", "two"]);
  const { find, dir } = await withForks("one");
  assert.deepEqual(await find(), ["two"]);
  writeFileSync(sidecarPath(new Layout(dir).streamDirectory("one")), "");
  assert.deepEqual(await find(), ["two"]);
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
  files.gate = failing("EISDIR", ["read"], /one.meta\.json$/);
  assert.deepEqual(await find(), ["or one that its list has", "two"]);
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
  assert.deepEqual(await find(), ["it lists who knows"]);
});

test("a source's own list is told of, however damaged its sidecar is, and what says nothing of a source may stand in it", async () => {
  const { find, dir, known } = await withForks();
  const sidecarOf = (name: string): string => sidecarPath(new Layout(dir).streamDirectory(name));
  assert.deepEqual(await find("other"), ["three"]);
  assert.deepEqual(await find("three"), ["it lists none"]);
  for (const name of ["other", "three"])
    writeFileSync(sidecarOf(name), readFileSync(sidecarOf(name), "utf8").replace('"closed": false', '"closed": fals3'));
  assert.deepEqual(await find("other"), ["three"]);
  assert.deepEqual(await find("three"), ["it lists none"]);
  for (const bytes of ["", encodeRefusal("nobody knows what it was")]) {
    writeFileSync(sidecarOf("three"), bytes);
    assert.deepEqual(await find("other"), ["or one that its list has"]);
    assert.deepEqual(await find("three"), ["it lists who knows"]);
  }
  rmSync(sidecarOf("three"));
  assert.deepEqual(await find("other"), []);
  writeFileSync(segmentPath(new Layout(dir).streamDirectory("three"), 0), "bytes");
  assert.deepEqual(await find("other"), ["or one that its list has"]);
  known.add("three");
  assert.deepEqual(await find("other"), []);
});

test("a source's name with a wrong byte in it is none, and a sound one of another source is no doubt", async () => {
  const { find, dir } = await withForks();
  const path = sidecarPath(new Layout(dir).streamDirectory("three"));
  writeFileSync(path, readFileSync(path, "utf8").replace('{"name":"other"', '{"name":"othar"'));
  assert.deepEqual(await find("other"), ["or one that its list has"]);
});

test("the list of a source under a notice is that of the sidecar beside it", async () => {
  const { find, dir } = await withForks();
  const directory = new Layout(dir).streamDirectory("other");
  const bytes = readFileSync(sidecarPath(directory));
  const read = decodeSidecar(bytes);
  assert.ok(read.kind === "sound");
  writeFileSync(sidecarPath(directory), encodeNotice(read.sidecar, "its files could not be written"));
  assert.deepEqual(await find("other"), ["it lists who knows", "three"]);
  writeFileSync(coveredSidecarPath(directory), bytes);
  assert.deepEqual(await find("other"), ["three"]);
  // A list without forks lacks what came after it.
  writeFileSync(coveredSidecarPath(directory), readFileSync(sidecarPath(new Layout(dir).streamDirectory("three"))));
  assert.deepEqual(await find("other"), ["it lists who knows", "three"]);
});

test("all who ask while a search is under way share the next", async () => {
  const { find, files } = await withForks();
  const first = find();
  await Promise.resolve(); // the first search has begun
  const found = await Promise.all([first, find("other"), find(), ...Array.from({ length: 10 }, () => find("three"))]);
  assert.deepEqual(found.slice(0, 4), [["one", "two"], ["three"], ["one", "two"], ["it lists none"]]);
  const streams = 5;
  assert.equal(files.count("open", /meta\.json$/), 2 * streams);
});

test("a search that fails is told to those who share it, and the next is made all the same", async () => {
  const { find, files } = await withForks();
  files.gate = failing("EMFILE", ["open"], /meta\.json$/);
  const [first, second] = await Promise.allSettled([find(), find("other")]);
  assert.deepEqual([first?.status, second?.status], ["rejected", "rejected"]);
  files.gate = null;
  assert.deepEqual(await find(), ["one", "two"]);
});

test("an end of the engine ends the search", async () => {
  const { find, files, state } = await withForks();
  files.gate = ({ kind }) => void (kind === "open" && state.end());
  await assert.rejects(find(), StorageBusyError);
  assert.equal(files.count("open", /meta\.json$/), 1);
});
