import assert from "node:assert/strict";
import { readFileSync, renameSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { systemFiles, type SystemFiles } from "../../../../src/storage/file/disk/files.js";
import { hasJournalOpen, processStart, thisProcess } from "../../../../src/storage/file/directory/process-identity.js";
import { startNode, startProgram } from "../../../helpers/process.js";
import { tempDir } from "../../../helpers/temp-dir.js";
import { diskError, WatchedFiles } from "../../../helpers/watched-files.js";

const files = systemFiles(false);
const lacksProc = process.platform !== "linux" && "no /proc";

test("a process has a start that does not change", async () => {
  const self = await thisProcess(files);
  assert.deepEqual([self.pid, self.host], [process.pid, hostname()]);
  assert.equal(self.startedAt, await processStart(files, process.pid));
});

test("a process is that of a boot and of a pid namespace", { skip: lacksProc }, async () => {
  const { boot, pidNamespace } = await thisProcess(files);
  assert.equal(boot, readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  assert.match(pidNamespace ?? "", /^pid:\[\d+\]$/);
});

test("a process that is gone has no start", async (t) => {
  const gone = startNode(t, ["-e", "console.log(process.pid)"]);
  assert.equal(await processStart(files, Number((await gone.ended).stdout)), undefined);
});

test("a process that has ended is gone, also while its parent has not asked how", { skip: lacksProc }, async (t) => {
  const parent = startProgram(t, "sh", ["-c", "sleep 60 & echo $!; exec sleep 60"]);
  const child = Number(await parent.stdoutLine(/^\d+$/));
  // Until then it is a shell, which asks how its children ended.
  const isSleeping = (): boolean => readFileSync(`/proc/${parent.pid}/comm`, "utf8") === "sleep\n";
  while (!isSleeping()) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(typeof (await processStart(files, child)), "string");
  process.kill(child, "SIGKILL");
  const state = (): string | undefined => /\) (\S)/.exec(readFileSync(`/proc/${child}/stat`, "utf8"))?.[1];
  while (state() !== "Z") await new Promise((resolve) => setImmediate(resolve));
  assert.equal(await processStart(files, child), undefined);
  assert.equal(state(), "Z");
});

test("a process whose start the system does not tell has null", async () => {
  for (const code of ["ENOENT", "EACCES"]) {
    const blind = new WatchedFiles();
    blind.gate = ({ kind }) => (kind === "open" ? diskError(code) : undefined);
    assert.equal(await processStart(blind, process.pid), null);
  }
  const broken = new WatchedFiles();
  broken.gate = ({ kind }) => (kind === "open" ? diskError("EIO") : undefined);
  await assert.rejects(processStart(broken, process.pid), { code: "EIO" });
});

test("the /proc of another pid namespace is not asked: its numbers are other processes", async () => {
  const foreign = new WatchedFiles({
    ...files,
    linkTarget: async (path) => (path === "/proc/self" ? String(process.pid + 1) : files.linkTarget(path)),
  });
  assert.equal(await processStart(foreign, process.pid), null);
});

test("a process with a name that looks like the system's own fields is read right", async (t) => {
  const named = startNode(t, ["-e", "process.title = 'a) S 1 2 3'; console.log(process.pid); setInterval(() => {}, 1000)"]);
  const plain = startNode(t, ["-e", "console.log(process.pid); setInterval(() => {}, 1000)"]);
  const starts = [];
  for (const child of [named, plain]) starts.push(await processStart(files, Number(await child.stdoutLine(/^\d+$/))));
  if (starts[1] === null) return t.skip("this system has no /proc");
  const ticks = starts.map((start) => Number(start?.split(" ")[1]));
  return assert.ok(Math.abs((ticks[0] ?? 0) - (ticks[1] ?? 0)) < 60 * 100, `both started just now, at ${ticks.join(" and ")}`);
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
