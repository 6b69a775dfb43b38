import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { processStart } from "../../../../src/ops/lock/process-identity.js";
import { systemFiles, type SystemFiles } from "../../../../src/storage/file/disk/files.js";
import { hasJournalOpen, procOf } from "../../../../src/storage/file/directory/journal-users.js";
import { lacksProc } from "../../../helpers/platform.js";
import { startNode } from "../../../helpers/process.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError, WatchedFiles } from "../../../helpers/watched-files.js";

const files = systemFiles(false);

test("what the system does not tell of a process is null, and a fault of the disk is one", async () => {
  for (const code of ["ENOENT", "EACCES"]) {
    const blind = new WatchedFiles();
    blind.gate = ({ kind }) => (kind === "open" ? diskError(code) : undefined);
    assert.equal(await processStart(procOf(blind), process.pid), null);
  }
  const broken = new WatchedFiles();
  broken.gate = ({ kind }) => (kind === "open" ? diskError("EIO") : undefined);
  await assert.rejects(processStart(procOf(broken), process.pid), { code: "EIO" });
});

/** A new journal with one file, which this process has open. */
async function openJournal(t: TestContext): Promise<string> {
  const journal = join(tempDir(), "journal");
  await files.makeDirectory(journal);
  const file = await files.createNew(join(journal, "0000000000000001.journal"));
  t.after(() => file.close());
  return journal;
}

test("a process that has a journal open is told from one that has another", { skip: lacksProc }, async (t) => {
  const [journal, other] = [await openJournal(t), await openJournal(t)];
  const copy = join(tempDir(), "journal");
  await files.makeDirectory(copy);
  await (await files.createNew(join(copy, "0000000000000001.journal"))).close();
  const stranger = startNode(t, ["-e", "console.log(process.pid); setInterval(() => {}, 1000)"]);
  const pid = Number(await stranger.stdoutLine(/^\d+$/));
  assert.deepEqual(await Promise.all([journal, other].map((path) => hasJournalOpen(files, process.pid, path))), [true, true]);
  assert.deepEqual(await Promise.all([copy, join(copy, "none")].map((path) => hasJournalOpen(files, process.pid, path))), [false, false]);
  assert.equal(await hasJournalOpen(files, pid, journal), false);
  // Wherever it lies by now.
  renameSync(journal, `${journal}-moved`);
  assert.equal(await hasJournalOpen(files, process.pid, `${journal}-moved`), true);
});

test("whether a process has a journal open is not said where the system does not tell", { skip: lacksProc }, async (t) => {
  const journal = await openJournal(t);
  const gone = startNode(t, ["-e", "console.log(process.pid)"]);
  assert.equal(await hasJournalOpen(files, Number((await gone.ended).stdout), journal), null);
  const denied = (code: string) => (path: string) => (path.startsWith("/proc/") ? Promise.reject(diskError(code)) : files.list(path));
  const blind: Partial<SystemFiles>[] = [
    { list: denied("EACCES") },
    { linkTarget: async (path) => (path === "/proc/self" ? String(process.pid + 1) : files.linkTarget(path)) },
    { linkTarget: async (path) => (path === "/proc/self" ? String(process.pid) : null) },
  ];
  for (const more of blind) assert.equal(await hasJournalOpen({ ...files, ...more }, process.pid, journal), null);
  assert.equal(await hasJournalOpen(new WatchedFiles(), process.pid, journal), null);
  await assert.rejects(hasJournalOpen({ ...files, list: denied("EIO") }, process.pid, journal), { code: "EIO" });
});
