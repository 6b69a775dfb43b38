import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, test } from "node:test";
import { Layout, lossesPath, replacementPath, segmentPath, sidecarPath } from "../../../../src/storage/file/format/layout.js";
import { backedUp, makeBackup } from "../../../helpers/backup.js";
import { openEngine } from "../../../helpers/engine.js";
import { lacksUsers } from "../../../helpers/machine.js";
import { textOf } from "../../../helpers/repaired-directory.js";
import { tempDir } from "../../../helpers/temp-dir.js";

const SECRET = "what only root may read";

/** A directory of somebody else, with a file. */
function elsewhere(): { readonly dir: string; readonly file: string } {
  const dir = tempDir();
  const file = join(dir, "precious");
  writeFileSync(file, SECRET);
  return { dir, file };
}

/** Puts a link to `target` in the place of what is at `path`. */
function plant(target: string, path: string): void {
  rmSync(path, { recursive: true, force: true });
  symlinkSync(target, path);
}

/** All that a directory has, by the names in it. */
function bytesBelow(dir: string): string {
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true });
  return entries.map((entry) => (entry.isFile() ? readFileSync(join(entry.parentPath, entry.name), "latin1") : "")).join("\n");
}

async function assertComplete(dest: string, names: readonly string[]): Promise<void> {
  const engine = await openEngine({ dir: dest });
  for (const name of names) assert.equal((await textOf(engine, name)).length, 15_000);
  await engine.storage.close();
}

describe("a link in the place that a backup goes to", () => {
  for (const [what, pathIn] of [
    ["the mark that is being written", (copy: Layout) => replacementPath(copy.backup)],
    ["the marker that is being written", (copy: Layout) => replacementPath(copy.marker)],
    ["a segment that is new", (copy: Layout) => segmentPath(copy.streamDirectory("s"), 10_000)],
    ["a segment that is there", (copy: Layout) => segmentPath(copy.streamDirectory("s"), 0)],
    ["a sidecar that is being written", (copy: Layout) => replacementPath(sidecarPath(copy.streamDirectory("s")))],
    ["a file of the journal", (copy: Layout) => copy.journalFile(1)],
  ] as const)
    test(`as ${what} is not written through`, async () => {
      const { dir, dest, copy } = await backedUp();
      const { file } = elsewhere();
      plant(file, pathIn(copy));
      const { lines } = await makeBackup(dir, dest);
      assert.deepEqual([lines, readFileSync(file, "utf8")], [[], SECRET]);
      await assertComplete(dest, ["s", "other"]);
    });

  test("as the directory of a stream is removed, and nothing behind it", async () => {
    const { dir, dest, copy } = await backedUp();
    const other = elsewhere();
    plant(other.dir, copy.streamDirectory("s"));
    await makeBackup(dir, dest);
    assert.deepEqual(readdirSync(other.dir), ["precious"]);
    assert.ok(lstatSync(copy.streamDirectory("s")).isDirectory());
    await assertComplete(dest, ["s", "other"]);
  });

  test("as the directory of a stream that is gone is removed, and nothing behind it", async () => {
    const { dir, dest, copy } = await backedUp();
    const other = elsewhere();
    symlinkSync(other.dir, join(dirname(copy.streamDirectory("s")), "gone"));
    await makeBackup(dir, dest);
    assert.deepEqual(readdirSync(other.dir), ["precious"]);
  });

  for (const [what, pathIn] of [
    ["streams", (copy: Layout) => copy.streams],
    ["journal", (copy: Layout) => copy.journal],
    ["damaged", (copy: Layout) => copy.damaged],
    ["a directory of streams", (copy: Layout) => dirname(copy.streamDirectory("s"))],
  ] as const)
    test(`as ${what} is refused, and the backup before is whole`, async () => {
      const { dir, dest, copy } = await backedUp();
      const other = elsewhere();
      plant(other.dir, pathIn(copy));
      const message = `${pathIn(copy)} is a symbolic link, which a backup does not have: remove it`;
      await assert.rejects(makeBackup(dir, dest), { message });
      assert.deepEqual(readdirSync(other.dir), ["precious"]);
      assert.ok(existsSync(copy.marker));
    });
});

describe("a link in the directory that is backed up", () => {
  for (const [what, pathIn] of [
    ["sidecar", (layout: Layout) => sidecarPath(layout.streamDirectory("s"))],
    ["file of losses", (layout: Layout) => lossesPath(layout.streamDirectory("s"))],
    ["segment", (layout: Layout) => segmentPath(layout.streamDirectory("s"), 10_000)],
    ["directory of a stream", (layout: Layout) => layout.streamDirectory("s")],
    ["directory of streams", (layout: Layout) => dirname(layout.streamDirectory("s"))],
    ["directory of what repairs set aside", (layout: Layout) => layout.damaged],
  ] as const)
    test(`as a ${what} is told, and all else is copied`, async () => {
      const { dir, layout } = await backedUp();
      const dest = join(tempDir(), "backup");
      const other = elsewhere();
      const path = pathIn(layout);
      plant(/[.]/.test(basename(path)) ? other.file : other.dir, path);
      const { lines } = await makeBackup(dir, dest);
      assert.deepEqual(
        lines.map((line) => line.replace(/^s?: /, "")),
        [`${path.slice(dir.length + 1)}: it can't be read: ELOOP`],
      );
      assert.ok(!bytesBelow(dest).includes(SECRET));
      await assertComplete(dest, ["other"]);
    });

  test("beside a damaged sidecar, and below what repairs set aside, is told", async () => {
    const { dir, layout } = await backedUp();
    const dest = join(tempDir(), "backup");
    const { file } = elsewhere();
    const stream = layout.streamDirectory("s");
    writeFileSync(sidecarPath(stream), "{");
    mkdirSync(join(layout.damaged, "1"), { recursive: true });
    symlinkSync(file, join(stream, "note"));
    symlinkSync(file, join(layout.damaged, "1", "note"));
    const { lines } = await makeBackup(dir, dest);
    assert.equal(lines.filter((line) => line.endsWith("note: it can't be read: ELOOP")).length, 2, lines.join("\n"));
    assert.ok(!bytesBelow(dest).includes(SECRET));
  });

  test("that the administrator made of streams and journal is followed", async () => {
    const { dir, dest, layout } = await backedUp();
    const place = tempDir();
    for (const path of [layout.streams, layout.journal]) {
      renameSync(path, join(place, basename(path)));
      symlinkSync(join(place, basename(path)), path);
    }
    assert.deepEqual((await makeBackup(dir, dest)).lines, []);
    await assertComplete(dest, ["s", "other"]);
    await assertComplete(dir, ["s", "other"]);
  });

  test("that another user made of streams is refused, and the backup before is whole", { skip: lacksUsers }, async () => {
    const { dir, dest, layout, copy } = await backedUp();
    const place = join(tempDir(), "streams");
    renameSync(layout.streams, place);
    symlinkSync(place, layout.streams);
    lchownSync(layout.streams, 65534, 65534);
    await assert.rejects(makeBackup(dir, dest), /streams is a symbolic link of another user: run the backup as that user$/);
    assert.ok(existsSync(copy.marker));
  });
});

test("a pipe among the files that are backed up is told, and not waited for", async () => {
  const { dir, layout } = await backedUp();
  const path = lossesPath(layout.streamDirectory("s"));
  execFileSync("mkfifo", [path]);
  const { lines } = await makeBackup(dir, join(tempDir(), "backup"));
  assert.deepEqual(lines, [`s: ${path.slice(dir.length + 1)}: it can't be read: ESPIPE`]);
});
