import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { test } from "node:test";
import { systemFiles } from "../../../../src/storage/file/disk/files.js";
import { processStart, thisProcess } from "../../../../src/storage/file/directory/process-identity.js";
import { startNode, startProgram } from "../../../helpers/process.js";
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
