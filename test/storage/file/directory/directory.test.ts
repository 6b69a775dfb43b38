import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { explainUnusable, prepareDirectory, writeMarker } from "../../../../src/storage/file/directory/directory.js";
import { SyncError, systemFiles } from "../../../../src/storage/file/disk/files.js";
import { Layout } from "../../../../src/storage/file/format/layout.js";
import { DirectoryError } from "../../../../src/storage/file/directory/lock.js";
import { filesWith } from "../../../helpers/backup.js";
import { crash, created, openEngine } from "../../../helpers/engine.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError, WatchedFiles } from "../../../helpers/watched-files.js";

const files = systemFiles(false);
const NOW_MS = 1_790_000_000_000;

describe("a data directory", () => {
  test("is made in an empty one, with an id of its own", async () => {
    const [one, other] = [new Layout(tempDir()), new Layout(tempDir())];
    const prepared = await prepareDirectory(files, one, NOW_MS);
    assert.equal(prepared.isNew, true);
    assert.equal(prepared.id.length, 8);
    assert.equal(readdirSync(one.streams).length, 256);
    assert.ok(!(await prepareDirectory(files, other, NOW_MS)).id.equals(prepared.id));
  });

  test("that can't be made whole is refused once nothing of it is still being made", async () => {
    const layout = new Layout(tempDir());
    let [begun, over] = [0, 0];
    let others: () => void = () => {};
    const allBegun = new Promise<void>((resolve) => (others = resolve));
    const makeDirectory = async (path: string): Promise<void> => {
      if (!/streams.[0-9a-f]{2}$/.test(path)) return files.makeDirectory(path);
      begun += 1;
      if (path.endsWith("00")) throw diskError("ENOSPC");
      if (begun === 256) others();
      await allBegun;
      await files.makeDirectory(path);
      over += 1;
    };
    await assert.rejects(prepareDirectory({ ...files, makeDirectory }, layout, NOW_MS), { code: "ENOSPC" });
    assert.deepEqual([begun, over], [256, 255]);
  });

  test("is known by its marker, which a human can read", async () => {
    const layout = new Layout(tempDir());
    const { id } = await prepareDirectory(files, layout, NOW_MS);
    await writeMarker(files, layout, id);
    assert.deepEqual(await prepareDirectory(files, layout, NOW_MS), { id, isNew: false, restores: [] });
    assert.deepEqual(JSON.parse(readFileSync(layout.marker, "utf8")), { format: 1, directory: id.toString("hex") });
  });

  test("keeps when it was opened as a backup, which it is no more", async () => {
    const layout = new Layout(tempDir());
    const { id } = await prepareDirectory(files, layout, NOW_MS);
    await writeMarker(files, layout, id);
    // The last time the clock was put back.
    const restores: number[] = [];
    for (const nowMs of [NOW_MS + 2, NOW_MS + 5, NOW_MS]) {
      writeFileSync(layout.backup, "{}\n");
      // The mark of a backup goes last: after a start that was killed before that it is still one.
      const failing = filesWith((call, path) => {
        if (call === "unlink" && path === layout.backup) throw diskError("EIO");
      });
      await assert.rejects(prepareDirectory(failing, layout, nowMs - 1), { code: "EIO" });
      restores.push(Math.max(nowMs - 1, (restores.at(-1) ?? 0) + 1));
      restores.push(Math.max(nowMs, (restores.at(-1) ?? 0) + 1));
      for (const laterMs of [nowMs, nowMs + 10]) assert.deepEqual((await prepareDirectory(files, layout, laterMs)).restores, restores);
      assert.ok(!existsSync(layout.backup));
    }
  });

  test("gets its trash back, which a copy without empty directories lacks", async () => {
    const layout = new Layout(tempDir());
    const { id } = await prepareDirectory(files, layout, NOW_MS);
    await writeMarker(files, layout, id);
    rmdirSync(layout.trash);
    assert.equal((await prepareDirectory(files, layout, NOW_MS)).isNew, false);
    assert.deepEqual(readdirSync(layout.trash), []);
  });

  for (const [code, isHarmless] of [
    ["EINVAL", true],
    ["EROFS", true],
    ["EIO", false],
  ] as const) {
    test(`below one whose sync fails with ${code} is ${isHarmless ? "taken" : "refused"}`, async () => {
      const layout = new Layout(join(tempDir(), "data"));
      const { id } = await prepareDirectory(files, layout, NOW_MS);
      const syncDirectory = async (path: string): Promise<void> => {
        if (path === dirname(layout.root)) throw new SyncError("a sync failed", { cause: diskError(code) });
      };
      const written = writeMarker({ ...files, syncDirectory }, layout, id);
      if (isHarmless) await written;
      else await assert.rejects(written, SyncError);
    });
  }

  test("that can't be synced itself is refused, whatever the reason", async () => {
    const layout = new Layout(tempDir());
    const { id } = await prepareDirectory(files, layout, NOW_MS);
    const syncDirectory = (): Promise<void> => Promise.reject(new SyncError("a sync failed", { cause: diskError("EINVAL") }));
    await assert.rejects(writeMarker({ ...files, syncDirectory }, layout, id), SyncError);
  });

  test("whose first start was cut short is made again, without the journal of that start", async () => {
    const layout = new Layout(tempDir());
    await prepareDirectory(files, layout, NOW_MS);
    writeFileSync(layout.journalFile(1), "half a journal");
    writeFileSync(join(layout.journal, "notes"), "not ours");
    assert.equal((await prepareDirectory(files, layout, NOW_MS)).isNew, true);
    assert.deepEqual(readdirSync(layout.journal), ["notes"]);
  });

  test("is made beside what the system has put there", async () => {
    const layout = new Layout(tempDir());
    for (const name of ["lost+found", ".snapshots"]) mkdirSync(join(layout.root, name));
    assert.equal((await prepareDirectory(files, layout, NOW_MS)).isNew, true);
  });

  test("is taken with what others have put into it since", async () => {
    const layout = new Layout(tempDir());
    const { id } = await prepareDirectory(files, layout, NOW_MS);
    await writeMarker(files, layout, id);
    writeFileSync(join(layout.root, "README"), "not ours");
    assert.equal((await prepareDirectory(files, layout, NOW_MS)).isNew, false);
  });

  test("is not made among other files: one is named, and none added", async () => {
    const dir = tempDir();
    writeFileSync(join(dir, "package.json"), "{}");
    await assert.rejects(openEngine({ dir }), {
      name: "DirectoryError",
      message: `${dir} is no data directory, as it has package.json in it; name a directory that is new or empty`,
    });
    assert.deepEqual(readdirSync(dir), ["package.json"]);
  });

  test("that lost its marker but has streams is refused", async () => {
    const layout = new Layout(tempDir());
    await prepareDirectory(files, layout, NOW_MS);
    mkdirSync(layout.streamDirectory("s"), { recursive: true });
    await assert.rejects(
      prepareDirectory(files, layout, NOW_MS),
      (error: unknown) =>
        error instanceof DirectoryError && /streamdir\.json is missing, but the directory has streams/.test(error.message),
    );
  });

  test("that lost its marker but has streams in its journal is refused, and the journal is kept", async () => {
    const engine = await openEngine();
    await created(engine.storage, "s", "only in the journal");
    const dir = await crash(engine);
    const layout = new Layout(dir);
    rmSync(layout.marker);
    await assert.rejects(
      prepareDirectory(files, layout, NOW_MS),
      (error: unknown) => error instanceof DirectoryError && /streamdir\.json is missing, but the journal has records/.test(error.message),
    );
    assert.equal(readdirSync(layout.journal).length, 1);
  });

  test("whose marker is a directory, or can't be read, is refused by its path", async () => {
    const layout = new Layout(tempDir());
    mkdirSync(layout.marker);
    await assert.rejects(prepareDirectory(files, layout, NOW_MS), {
      name: "DirectoryError",
      message: `${layout.marker} can't be read: it is a directory`,
    });
    const locked = new WatchedFiles();
    locked.gate = ({ kind }) => (kind === "open" ? diskError("EACCES") : undefined);
    await assert.rejects(prepareDirectory(locked, layout, NOW_MS), {
      name: "DirectoryError",
      message: `${layout.marker} can't be read: permission denied`,
    });
  });

  for (const [what, marker, problem] of [
    ["damaged", '{"format":1,"directory":"short"}\n', /is damaged/],
    ["of a newer format", '{"format":7,"directory":"0123456789abcdef"}\n', /has format 7; this version knows format 1/],
  ] as const) {
    test(`whose marker is ${what} is refused`, async () => {
      const layout = new Layout(tempDir());
      writeFileSync(layout.marker, marker);
      await assert.rejects(
        prepareDirectory(files, layout, NOW_MS),
        (error: unknown) => error instanceof DirectoryError && problem.test(error.message),
      );
    });
  }
});

describe("the explanation of an unusable directory", () => {
  for (const [code, reason] of [
    ["EACCES", "permission denied"],
    ["EROFS", "the file system is read-only"],
    ["ENOTDIR", "it is not a directory"],
    ["ENOSPC", "the disk is full"],
    ["ENAMETOOLONG", "the path is too long"],
    ["ELOOP", "a symbolic link is in its place, or its links go in a circle"],
  ]) {
    test(`says what ${code} means, in one line`, () => {
      const explained = explainUnusable("/d", diskError(code ?? ""));
      assert.ok(explained instanceof DirectoryError);
      assert.equal(explained.message, `the directory /d can't be used: ${reason}`);
    });
  }

  test("names the file where it is about one in the directory", () => {
    const explained = explainUnusable("/d", Object.assign(diskError("EACCES"), { path: "/d/streams/ab" }));
    assert.ok(explained instanceof DirectoryError);
    assert.equal(explained.message, "the directory /d can't be used: /d/streams/ab: permission denied");
  });

  test("gives the system's own word for the rest, in one line", () => {
    const explained = explainUnusable("/d", diskError("EIO"));
    assert.ok(explained instanceof DirectoryError);
    assert.equal(explained.message, "the directory /d can't be used: EIO");
  });

  test("says that a sync failed, and why", () => {
    const explained = explainUnusable("/d", new SyncError("a sync failed: EIO: i/o error, fdatasync"));
    assert.ok(explained instanceof DirectoryError);
    assert.equal(explained.message, "the directory /d can't be used: a sync failed: EIO: i/o error, fdatasync");
  });

  test("leaves what is not the system's as it is", () => {
    for (const error of [new TypeError("a fault of ours"), "thrown"]) assert.equal(explainUnusable("/d", error), error);
  });
});
