import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  decodeIdentity,
  fieldsOf,
  hasEndedHere,
  isElsewhere,
  machineOf,
  processStanding,
  processStart,
  thisProcess,
  type Proc,
  type ProcessIdentity,
} from "../../../src/ops/lock/process-identity.js";
import { systemFiles } from "../../../src/storage/file/disk/files.js";
import { procOf } from "../../../src/storage/file/directory/journal-users.js";
import { lacksProc, pretendPlatform } from "../../helpers/platform.js";
import { startNode, startProgram } from "../../helpers/process.js";
import { tempDir } from "../../helpers/temp-dir.js";

const PROC = procOf(systemFiles(false));

test("a process has a start that does not change", async () => {
  const self = await thisProcess(PROC);
  assert.deepEqual([self.pid, self.host], [process.pid, hostname()]);
  assert.equal(self.startedAt, await processStart(PROC, process.pid));
});

test("a process is that of a boot and of a pid namespace", { skip: lacksProc }, async () => {
  const { boot, pidNamespace } = await thisProcess(PROC);
  assert.equal(boot, readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  assert.match(pidNamespace ?? "", /^pid:\[\d+\]$/);
});

test("a process is that of a boot on a Mac, too, as far as that tells", async (context) => {
  const { PATH } = process.env;
  const dir = tempDir();
  const noProc: Proc = { text: () => Promise.resolve(null), linkTarget: () => Promise.resolve(null) };
  pretendPlatform(context, "darwin");
  context.after(() => (process.env["PATH"] = PATH));
  for (const [script, boot] of [
    ['[ "$*" = "-n kern.bootsessionuuid" ] && echo 4C2A', "4C2A"],
    ["exit 1", null],
    ["true", null],
  ]) {
    writeFileSync(join(dir, "sysctl"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    process.env["PATH"] = dir;
    assert.equal((await thisProcess(noProc)).boot, boot);
  }
  process.env["PATH"] = "";
  assert.equal((await thisProcess(noProc)).boot, null);
});

test("a process that is gone has no start", async (t) => {
  const gone = startNode(t, ["-e", "console.log(process.pid)"]);
  assert.equal(await processStart(PROC, Number((await gone.ended).stdout)), undefined);
});

test("a process that has ended is gone, also while its parent has not asked how", { skip: lacksProc }, async (t) => {
  const parent = startProgram(t, "sh", ["-c", "sleep 60 & echo $!; exec sleep 60"]);
  const child = Number(await parent.stdoutLine(/^\d+$/));
  // Until then it is a shell, which asks how its children ended.
  const isSleeping = (): boolean => readFileSync(`/proc/${parent.pid}/comm`, "utf8") === "sleep\n";
  while (!isSleeping()) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(typeof (await processStart(PROC, child)), "string");
  process.kill(child, "SIGKILL");
  const state = (): string | undefined => /\) (\S)/.exec(readFileSync(`/proc/${child}/stat`, "utf8"))?.[1];
  while (state() !== "Z") await new Promise((resolve) => setImmediate(resolve));
  assert.equal(await processStart(PROC, child), undefined);
  assert.equal(state(), "Z");
});

test("a process whose start the system does not tell has null", async () => {
  assert.equal(await processStart({ ...PROC, text: async () => null }, process.pid), null);
});

test("the /proc of another pid namespace is not asked: its numbers are other processes", async () => {
  const linkTarget = async (path: string) => (path === "/proc/self" ? String(process.pid + 1) : PROC.linkTarget(path));
  assert.equal(await processStart({ ...PROC, linkTarget }, process.pid), null);
});

test("a process with a name that looks like the system's own fields is read right", async (t) => {
  const named = startNode(t, ["-e", "process.title = 'a) S 1 2 3'; console.log(process.pid); setInterval(() => {}, 1000)"]);
  const plain = startNode(t, ["-e", "console.log(process.pid); setInterval(() => {}, 1000)"]);
  const starts = [];
  for (const child of [named, plain]) starts.push(await processStart(PROC, Number(await child.stdoutLine(/^\d+$/))));
  if (starts[1] === null) return t.skip("this system has no /proc");
  const ticks = starts.map((start) => Number(start?.split(" ")[1]));
  return assert.ok(Math.abs((ticks[0] ?? 0) - (ticks[1] ?? 0)) < 60 * 100, `both started just now, at ${ticks.join(" and ")}`);
});

const SELF: ProcessIdentity = { pid: 100, host: "here", startedAt: "boot 5", boot: "boot", pidNamespace: "pid:[1]" };
const OTHER: ProcessIdentity = { pid: 7, host: "here", startedAt: "boot 1", boot: "boot", pidNamespace: "pid:[1]" };

describe("whether a process of these names still runs", () => {
  for (const [what, other, startedAt, standing] of [
    ["it is there", {}, "boot 1", "alive"],
    ["it is there as far as can be told", {}, null, "alive"],
    ["it could not tell its start", { startedAt: null }, "boot 9", "alive"],
    ["there is none", {}, undefined, "gone"],
    ["another has its id", {}, "boot 9", "gone"],
    ["the machine was started again", { boot: "old" }, "boot 1", "gone"],
    ["it was on another machine", { boot: "other", host: "there" }, "boot 1", "on-another-machine"],
    ["the boot is not told, of another host", { boot: null, host: "there" }, "boot 1", "on-another-machine"],
    ["the boot is not told, of this host", { boot: null }, undefined, "gone"],
    ["this machine has another name by now", { host: "there" }, undefined, "gone"],
    ["it was in another container", { pidNamespace: "pid:[2]" }, undefined, "in-another-namespace"],
  ] as const)
    test(`${what}: ${standing}`, async () => {
      assert.equal(await processStanding({ ...OTHER, ...other }, SELF, async (pid) => (pid === 7 ? startedAt : null)), standing);
    });

  test("that it has ended is certain only where its id counts here for certain", async () => {
    const ended = async (other: Partial<ProcessIdentity>, startedAt?: string | null) =>
      hasEndedHere({ ...OTHER, ...other }, SELF, async () => startedAt);
    assert.equal(await ended({}), true);
    assert.equal(await ended({}, "boot 9"), true);
    assert.equal(await ended({}, "boot 1"), false);
    assert.equal(await ended({ pidNamespace: null }), false);
    assert.equal(await ended({ pidNamespace: "pid:[2]" }), false);
  });

  test("its machine and its namespace are told from what both say", () => {
    assert.equal(machineOf(OTHER, SELF), "this");
    assert.equal(machineOf({ ...OTHER, boot: "old" }, SELF), "started-again");
    assert.equal(machineOf({ ...OTHER, boot: "old", host: "there" }, SELF), "another");
    assert.equal(isElsewhere({ ...OTHER, pidNamespace: null }, SELF), false);
    assert.equal(isElsewhere({ ...OTHER, pidNamespace: "pid:[2]" }, SELF), true);
  });
});

test("a process is written as JSON and read again; what is no process is none", () => {
  assert.deepEqual(decodeIdentity(fieldsOf(JSON.stringify(OTHER))), OTHER);
  const bare = { pid: 7, host: "here", startedAt: null, boot: null, pidNamespace: null };
  assert.deepEqual(decodeIdentity(fieldsOf('{"pid":7,"host":"here","boot":5}')), bare);
  for (const text of ["", '{"pid":7,"ho', "[1]", "null", '"x"', '{"pid":"7","host":"here"}', '{"pid":7}'])
    assert.equal(decodeIdentity(fieldsOf(text)), null, text);
});
