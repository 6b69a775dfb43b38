import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { isUnreadable, readingFrom, UnreadableError } from "../../../../src/storage/file/backup/unreadable.js";
import { DirectoryError } from "../../../../src/storage/file/directory/lock.js";
import { Layout, lossesPath, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { backedUp, filesWith, makeBackup, without } from "../../../helpers/backup.js";
import { bytesOf, crash, created, openEngine, openFor } from "../../../helpers/engine.js";
import { repair, textOf } from "../../../helpers/repaired-directory.js";
import { flipBit } from "../../../helpers/spoilt-files.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError } from "../../../helpers/watched-files.js";

const LAYOUT = new Layout("/d");

describe("what can't be read", () => {
  for (const [error, is] of [
    [diskError("EIO"), true],
    [diskError("EACCES"), true],
    [diskError("EMFILE"), false],
    [new TypeError("a fault of the program"), false],
  ] as const)
    test(`is told by ${error.message}: ${is}`, async () => {
      const read = readingFrom("/d/streams/00/a", () => Promise.reject(error));
      await assert.rejects(read, is ? { path: "/d/streams/00/a", problem: /^it can't be read: E/ } : error);
    });

  for (const [path, is] of [
    ["/d/streams/00/a/meta.json", true],
    ["/d/damaged/1/a", true],
    ["/d/damaged", true],
    ["/d/journal/1.journal", false],
    ["/d/streams", false],
    ["/backup/streams/00/a/meta.json", false],
  ] as const)
    test(`${is ? "is left out" : "ends the backup"} at ${path}`, () => {
      assert.equal(isUnreadable(new UnreadableError(path, diskError("EIO")), LAYOUT), is);
    });
});

const BEFORE = [1, 2].map((seed) => bytesOf(5000, seed).toString()).join("");
const TEXT = `${BEFORE}${bytesOf(5000, 3).toString()}`;

describe("a backup of a directory with a file that can't be read", () => {
  for (const [what, pathIn] of [
    ["sidecar", (layout: Layout) => sidecarPath(layout.streamDirectory("s"))],
    ["new segment", (layout: Layout) => segmentPath(layout.streamDirectory("s"), 10_000)],
    ["file of losses", (layout: Layout) => lossesPath(layout.streamDirectory("s"))],
  ] as const)
    test(`has all but that ${what}, keeps what it had, and tells`, async () => {
      const { dir, dest, layout, copy } = await backedUp();
      const path = pathIn(layout);
      const { lines, troubles } = await makeBackup(dir, dest, { files: without(path) });
      assert.deepEqual([lines, troubles], [[`s: ${path.slice(dir.length + 1)}: it can't be read: EIO`], 1]);
      for (const [start, seed] of [0, 5000].entries()) {
        const bytes = readFileSync(segmentPath(copy.streamDirectory("s"), seed));
        assert.ok(bytes.equals(bytesOf(5000, start + 1)));
      }
      const engine = await openEngine({ dir: dest });
      assert.equal(await textOf(engine, "other"), TEXT);
      await engine.storage.close();
    });

  test("copies the rest of a stream of which it has nothing yet", async () => {
    const { dir, layout } = await backedUp();
    const dest = join(tempDir(), "backup");
    const sidecar = sidecarPath(layout.streamDirectory("s"));
    const { lines } = await makeBackup(dir, dest, { files: without(sidecar) });
    assert.deepEqual(lines, [`s: ${sidecar.slice(dir.length + 1)}: it can't be read: EIO`]);
    const names = readdirSync(new Layout(dest).streamDirectory("s"));
    assert.equal(names.filter((name) => name.endsWith(".seg")).length, 3);
  });

  test("is made beside a server that has it open", async (t) => {
    const { dir, dest, layout } = await backedUp();
    await openFor(t, { dir });
    const segment = segmentPath(layout.streamDirectory("s"), 10_000);
    const { lines } = await makeBackup(dir, dest, { files: without(segment) });
    assert.deepEqual(lines, [`s: ${segment.slice(dir.length + 1)}: it can't be read: EIO`]);
    assert.ok(existsSync(new Layout(dest).marker));
  });

  test("goes on past one that a repair has set aside", async () => {
    const { dir, layout } = await backedUp();
    flipBit(sidecarPath(layout.streamDirectory("s")), 30);
    rmSync(segmentPath(layout.streamDirectory("s"), 0));
    await repair(dir);
    const names = readdirSync(layout.damaged, { recursive: true, withFileTypes: true });
    const [aside] = names.filter((entry) => entry.isFile());
    assert.ok(aside !== undefined);
    const { lines } = await makeBackup(dir, join(tempDir(), "backup"), { files: without(join(aside.parentPath, aside.name)) });
    assert.ok(
      lines.some((line) => line.startsWith(": damaged/") && line.endsWith("it can't be read: EIO")),
      lines.join("\n"),
    );
  });

  test("leaves what repairs have set aside as it was where that can't be listed", async () => {
    const { dir, dest, layout, copy } = await backedUp();
    const { lines } = await makeBackup(dir, dest, { files: without(layout.damaged) });
    assert.deepEqual(lines, [": damaged: it can't be read: EIO"]);
    assert.ok(existsSync(copy.marker));
  });

  test("takes no sidecar of another stream that takes the name meanwhile", async () => {
    const { dir, layout } = await backedUp();
    const sidecar = sidecarPath(layout.streamDirectory("s"));
    const dest = join(tempDir(), "backup");
    let reads = 0;
    const files = filesWith((call, path) => {
      // It can be read again once its stream has been found to be unreadable.
      if (call === "open" && path === sidecar && (reads += 1) === 1) throw diskError("EIO");
    });
    await makeBackup(dir, dest, { files });
    const names = readdirSync(new Layout(dest).streamDirectory("s"));
    assert.ok(!names.includes("meta.json") && names.length >= 3, names.join());
    assert.equal((await makeBackup(dir, dest)).tally.changedStreams, 1);
  });

  test("is not begun where that is the journal, and the one before is whole", async () => {
    const { dir, dest, copy } = await backedUp();
    await assert.rejects(makeBackup(dir, dest, { files: without(/[.]journal$/) }), DirectoryError);
    assert.ok(existsSync(copy.marker));
    const engine = await openEngine({ dir: dest });
    assert.equal(await textOf(engine, "s"), BEFORE);
    await engine.storage.close();
  });

  test("is not begun where the journal is damaged, and the one before is whole", async () => {
    const { dir, dest, copy } = await backedUp();
    const engine = await openEngine({ dir });
    for (const name of ["t", "u"]) await created(engine.storage, name, "x");
    await engine.files.idle();
    const crashed = await crash(engine);
    for (const name of readdirSync(join(crashed, "journal"))) flipBit(join(crashed, "journal", name), 520);
    await assert.rejects(makeBackup(crashed, dest), /journal file .* is damaged at byte 512/);
    assert.ok(existsSync(copy.marker));
  });
});

test("a backup removes what is gone before it copies what is new: there need not be room for both", async () => {
  const { dir, dest, copy } = await backedUp();
  const former = segmentPath(copy.streamDirectory("s"), 90_000);
  writeFileSync(former, "");
  const isThere: boolean[] = [];
  const last = segmentPath(copy.streamDirectory("s"), 10_000);
  const files = filesWith((_, path) => {
    if (path.startsWith(last)) isThere.push(existsSync(former));
  });
  await makeBackup(dir, dest, { files });
  assert.equal(isThere[0], false);
});

test("a backup that is told to stop before it copies leaves the one before whole", async () => {
  const { dir, dest, copy } = await backedUp();
  const stop = new AbortController();
  const files = filesWith((call, path) => {
    if (call === "open" && path.endsWith(".journal")) stop.abort(new DirectoryError("enough"));
  });
  await assert.rejects(makeBackup(dir, dest, { files, stop: stop.signal }), { message: "enough" });
  assert.ok(existsSync(copy.marker));
  const engine = await openEngine({ dir: dest });
  assert.equal(await textOf(engine, "s"), BEFORE);
  await engine.storage.close();
});

test("a backup that is told to stop does not wait for an answer of the server", async (t) => {
  const { dir, dest } = await backedUp();
  await openFor(t, { dir });
  const stop = new AbortController();
  const files = filesWith((call) => {
    if (call === "connect") process.nextTick(() => stop.abort(new DirectoryError("enough")));
  });
  await assert.rejects(makeBackup(dir, dest, { files, stop: stop.signal }), { message: "enough" });
});

test("a backup that is told to stop leaves nobody's lock, and what it copied to the next", async () => {
  const { dir, dest, copy } = await backedUp();
  const stop = new AbortController();
  const files = filesWith((call, path) => {
    if (call === "linkStatus" && path.endsWith(".seg")) stop.abort(new DirectoryError("enough"));
  });
  await assert.rejects(makeBackup(dir, dest, { files, stop: stop.signal }), { message: "enough" });
  for (const root of [dir, dest])
    assert.deepEqual(
      readdirSync(root).filter((name) => name.startsWith("lock")),
      [],
    );
  assert.ok(!existsSync(copy.marker));
  await makeBackup(dir, dest);
  const engine = await openEngine({ dir: dest });
  assert.equal(await textOf(engine, "s"), TEXT);
  await engine.storage.close();
});
