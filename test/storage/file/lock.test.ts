import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { assertUnlocked, DirectoryError, lockDirectory, processStart, takeLock, thisProcess, type LockHolder, type LockOptions } from "../../../src/storage/file/lock.js";
import { systemFiles } from "../../../src/storage/file/files.js";
import { keptLog } from "../../helpers/engine.js";
import { startNode, startProgram } from "../../helpers/process.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { diskError, WatchedFiles } from "../../helpers/watched-files.js";

const SELF: LockHolder = { pid: 100, host: "here", startedAt: "boot 5" };

/** A lock in a new directory; `running` says when each living process started. */
function lockIn(running: Readonly<Record<number, string | null>> = {}, more: Partial<LockOptions> = {}): LockOptions {
  return { files: systemFiles(false), path: join(tempDir(), "lock"), self: SELF, startedAtOf: async (pid) => running[pid], force: false, ...more };
}

function leave(options: LockOptions, holder: unknown): void {
  writeFileSync(options.path, typeof holder === "string" ? holder : JSON.stringify(holder));
}

describe("the lock", () => {
  test("names its holder, and is gone when it is given back", async () => {
    const options = lockIn();
    const unlock = await takeLock(options);
    assert.deepEqual(JSON.parse(readFileSync(options.path, "utf8")), SELF);
    await unlock();
    assert.ok(!existsSync(options.path));
  });

  for (const [what, holder, running] of [
    ["a living process", { pid: 7, host: "here", startedAt: "boot 1" }, { 7: "boot 1" }],
    ["a living process whose start is not told", { pid: 7, host: "here", startedAt: "boot 1" }, { 7: null }],
    ["a living process that could not tell its start", { pid: 7, host: "here" }, { 7: "boot 1" }],
    ["a process of another host, which nobody here can see", { pid: 7, host: "elsewhere", startedAt: "boot 1" }, {}],
  ] as const) {
    test(`is refused while it is that of ${what}`, async () => {
      const options = lockIn(running);
      leave(options, holder);
      await assert.rejects(takeLock(options), (error: unknown) => {
        return error instanceof DirectoryError && error.message.startsWith(`the directory is in use by process 7 on ${holder.host} (${options.path})`);
      });
      assert.deepEqual(JSON.parse(readFileSync(options.path, "utf8")), holder);
    });
  }

  for (const [what, holder, running] of [
    ["a process that is gone", { pid: 7, host: "here", startedAt: "boot 1" }, {}],
    ["a process whose id another one has now", { pid: 7, host: "here", startedAt: "boot 1" }, { 7: "boot 9" }],
    ["this very process id before a restart of the machine", { pid: 100, host: "here", startedAt: "old boot 5" }, { 100: "boot 5" }],
    ["a start that was cut short", '{"pid":7,"ho', {}],
    ["nobody", "", {}],
    ["no holder at all", "[1]", {}],
    ["a holder without a process", { pid: "7", host: "here" }, {}],
  ] as const) {
    test(`is taken over from ${what}`, async () => {
      const options = lockIn(running);
      leave(options, holder);
      const unlock = await takeLock(options);
      assert.deepEqual(JSON.parse(readFileSync(options.path, "utf8")), SELF);
      await unlock();
      assert.deepEqual(readdirSync(join(options.path, "..")), []);
    });
  }

  test("that somebody else takes over at the same time stays theirs", async () => {
    const files = new WatchedFiles();
    const other = { pid: 8, host: "here", startedAt: "boot 2" };
    const options = lockIn({ 8: "boot 2" }, { files });
    leave(options, { pid: 7, host: "here", startedAt: "boot 1" });
    files.gate = ({ kind }) => {
      if (kind === "rename" && files.count("rename", /./) === 1) leave(options, other);
      return undefined;
    };
    await assert.rejects(takeLock(options), /in use by process 8/);
    assert.deepEqual(JSON.parse(readFileSync(options.path, "utf8")), other);
  });

  test("that vanishes while it is looked at is taken", async () => {
    const files = new WatchedFiles();
    const options = lockIn({}, { files });
    leave(options, { pid: 7, host: "here" });
    files.gate = ({ kind, path }) => (kind === "rename" && path === options.path ? removing(options.path) : undefined);
    await (await takeLock(options))();
    async function removing(path: string): Promise<void> {
      await systemFiles(false).unlink(path);
    }
  });

  test("that changes hands over and over is given up", async () => {
    const files = new WatchedFiles();
    const options = lockIn({}, { files });
    files.gate = ({ kind }) => (kind === "createNew" ? diskError("EEXIST") : undefined);
    await assert.rejects(takeLock(options), (error: unknown) => error instanceof DirectoryError && /changes hands too fast/.test(error.message));
  });

  test("passes other errors on", async () => {
    for (const kind of ["createNew", "write", "rename"]) {
      const files = new WatchedFiles();
      const options = lockIn({}, { files });
      if (kind === "rename") leave(options, "");
      files.gate = (operation) => (operation.kind === kind ? diskError("EACCES") : undefined);
      await assert.rejects(takeLock(options), { code: "EACCES" });
    }
  });
});

describe("the lock of another host", () => {
  const files = systemFiles(false);
  const away = { pid: 7, host: `not-${hostname()}`, startedAt: "boot 1" };
  const here = { pid: process.ppid, host: hostname(), startedAt: null };

  function left(holder: LockHolder): string {
    const path = join(tempDir(), "lock");
    writeFileSync(path, JSON.stringify(holder));
    return path;
  }

  test("is refused in words that say how to take it and when", async () => {
    const { log } = keptLog();
    await assert.rejects(lockDirectory(files, left(away), { force: false, log }), /process 7 on not-.* can't be seen from here; once it certainly does not, --force-unlock/);
    await assert.rejects(assertUnlocked(files, left(away), false), /--force-unlock takes its lock away/);
  });

  test("is taken away by force, which the log tells; looking leaves it", async () => {
    const { log, lines } = keptLog();
    const path = left(away);
    await assertUnlocked(files, path, true);
    assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), away);
    const unlock = await lockDirectory(files, path, { force: true, log });
    assert.equal(JSON.parse(readFileSync(path, "utf8")).pid, process.pid);
    assert.deepEqual(lines.map(({ level, fields }) => [level, fields["pid"], fields["host"]]), [["warn", 7, away.host]]);
    await unlock();
    assert.ok(!existsSync(path));
  });

  test("is not confused with that of a living process here, which no force takes", async () => {
    const { log, lines } = keptLog();
    const path = left(here);
    await assert.rejects(lockDirectory(files, path, { force: true, log }), /it runs on this host, where --force-unlock overrides nobody/);
    await assert.rejects(assertUnlocked(files, path, true), /--force-unlock overrides nobody/);
    assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), here);
    assert.deepEqual(lines, []);
  });

  test("that was forced from this one is not given back by it", async () => {
    const { log } = keptLog();
    const path = join(tempDir(), "lock");
    const unlock = await lockDirectory(files, path, { force: false, log });
    writeFileSync(path, JSON.stringify(away));
    await unlock();
    assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), away);
  });

  test("force without a lock, and with one that a crash left here, is silent", async () => {
    const { log, lines } = keptLog();
    const path = join(tempDir(), "lock");
    await (await lockDirectory(files, path, { force: true, log }))();
    writeFileSync(path, '{"pid":7,"ho');
    await (await lockDirectory(files, path, { force: true, log }))();
    assert.deepEqual(lines, []);
  });
});

describe("looking whether a directory is in use", () => {
  test("takes no lock, and leaves what a crash left", async () => {
    const files = systemFiles(false);
    const path = join(tempDir(), "lock");
    await assertUnlocked(files, path, false);
    assert.ok(!existsSync(path));
    writeFileSync(path, "");
    await assertUnlocked(files, path, false);
    assert.ok(existsSync(path));
  });
});

describe("a process", () => {
  const files = systemFiles(false);

  test("has a start that does not change", async () => {
    const self = await thisProcess(files);
    assert.equal(self.pid, process.pid);
    assert.equal(self.startedAt, await processStart(files, process.pid));
  });

  test("that is gone has none", async (t) => {
    const gone = startNode(t, ["-e", "console.log(process.pid)"]);
    assert.equal(await processStart(files, Number((await gone.ended).stdout)), undefined);
  });

  test("that has ended is gone, also while its parent has not asked how", { skip: process.platform !== "linux" && "no /proc" }, async (t) => {
    const parent = startProgram(t, "sh", ["-c", "sleep 60 & echo $!; exec sleep 60"]);
    const child = Number(await parent.stdoutLine(/^\d+$/));
    assert.equal(typeof (await processStart(files, child)), "string");
    process.kill(child, "SIGKILL");
    const state = (): string | undefined => /\) (\S)/.exec(readFileSync(`/proc/${child}/stat`, "utf8"))?.[1];
    while (state() !== "Z") await new Promise((resolve) => setImmediate(resolve));
    assert.equal(await processStart(files, child), undefined);
    assert.equal(state(), "Z");
  });

  test("whose start the system does not tell has null", async () => {
    for (const code of ["ENOENT", "EACCES"]) {
      const blind = new WatchedFiles();
      blind.gate = ({ kind }) => (kind === "open" ? diskError(code) : undefined);
      assert.equal(await processStart(blind, process.pid), null);
    }
    const broken = new WatchedFiles();
    broken.gate = ({ kind }) => (kind === "open" ? diskError("EIO") : undefined);
    await assert.rejects(processStart(broken, process.pid), { code: "EIO" });
  });

  test("with a name that looks like the system's own fields is read right", async (t) => {
    const named = startNode(t, ["-e", "process.title = 'a) S 1 2 3'; console.log(process.pid); setInterval(() => {}, 1000)"]);
    const plain = startNode(t, ["-e", "console.log(process.pid); setInterval(() => {}, 1000)"]);
    const starts = [];
    for (const child of [named, plain]) starts.push(await processStart(files, Number(await child.stdoutLine(/^\d+$/))));
    if (starts[1] === null) return t.skip("this system has no /proc");
    const ticks = starts.map((start) => Number(start?.split(" ")[1]));
    return assert.ok(Math.abs((ticks[0] ?? 0) - (ticks[1] ?? 0)) < 60 * 100, `both started just now, at ${ticks.join(" and ")}`);
  });
});
