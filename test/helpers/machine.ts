import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import type { TestScope } from "./process.js";
import { tempDir } from "./temp-dir.js";

/** Why a test that needs `command` can't run on this machine; `false` when it can. */
export function unless(command: readonly [string, ...string[]], needs: string): string | false {
  const [file, ...args] = command;
  const { status, error } = spawnSync(file, args, { stdio: "ignore" });
  return error === undefined && status === 0 ? false : `this machine does not let the test ${needs}`;
}

/** Why a test that changes the limits of a running process is left out, if it is. */
export const lacksLimits = unless(["prlimit", "--version"], "change the limits of a process (prlimit, Linux)");

/** Why a test that makes system calls fail is left out, if it is. */
export const lacksInjection = unless(
  ["strace", "-f", "-o", "/dev/null", "-e", "inject=fdatasync:error=EIO", "true"],
  "make system calls fail (strace, the right to trace)",
);

/** Why a test that needs a disk of its own is left out, if it is. */
export const lacksMounts = unless(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/tmp"], "mount a file system (root)");

/** Starts a process as a user who is not root, whom permissions bind. */
export const AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "--unset=NODE_V8_COVERAGE"] as const;

/** Why a test that needs a process without the rights of root is left out, if it is. */
export const lacksUsers = unless([...AS_NOBODY, "true"], "start a process as another user (setpriv, root)");

/** A small disk of its own, in memory: an empty directory on it. It is gone when the test is over. */
export function smallDisk(scope: TestScope, sizeMiB: number): string {
  const point = join(tempDir(), "disk");
  mkdirSync(point);
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${sizeMiB}m`, "none", point]);
  // Lazily: a process that the test started may still have it open.
  scope.after(async () => void execFileSync("umount", ["-l", point]));
  return point;
}

/** Takes all the room that a disk has, but for `leftBytes`; returns what gives it back. */
export function fillDisk(point: string, leftBytes = 0): () => void {
  const path = join(point, "ballast");
  const file = openSync(path, "wx");
  const zeros = Buffer.alloc(4096);
  let length = 0;
  try {
    for (;;) length += writeSync(file, zeros);
  } catch (error) {
    assert.match(String(error), /ENOSPC/);
  }
  execFileSync("truncate", ["-s", String(Math.max(0, length - leftBytes)), path]);
  closeSync(file);
  return () => unlinkSync(path);
}

/** Sets a limit of a running process, like `fsize` or `nofile`; `unlimited` is what it may go back to. */
export function limitProcess(pid: number, limit: "fsize" | "nofile", value: number | "unlimited"): void {
  // Only the soft limit: the hard one could not be raised again without rights.
  execFileSync("prlimit", ["--pid", String(pid), `--${limit}=${value}:`]);
}

/** Faults that are put into the system calls of a running process. */
export interface Injection {
  /** The system calls, like `pwrite64`. */
  readonly calls: string;
  /** What happens to them, as strace's `inject` has it: `error=EIO`, `delay_enter=100ms`. */
  readonly fault: string;
  /** Only on this file or directory. */
  readonly path?: string;
}

/** Begins to put faults into the system calls of process `pid`; resolves, once they are in force, to what ends them. */
export async function injectFaults(scope: TestScope, pid: number, { calls, fault, path }: Injection): Promise<() => Promise<void>> {
  const where = path === undefined ? [] : ["-P", path];
  const strace = spawn(
    "strace",
    ["-f", "-o", "/dev/null", "-p", String(pid), "-e", `trace=${calls}`, "-e", `inject=${calls}:${fault}`, ...where],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const ended = once(strace, "exit");
  const end = async (): Promise<void> => {
    strace.kill("SIGTERM");
    await ended;
  };
  scope.after(end);
  await new Promise<void>((resolve, reject) => {
    let said = "";
    // Listened to until its end: strace dies of a reader that leaves.
    strace.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      said += chunk;
      if (said.includes("attached")) resolve();
    });
    strace.stderr.on("end", () => reject(new Error(`strace: ${said}`)));
  });
  return end;
}

/** Why a test that needs containers is left out, if it is. */
export const lacksNamespaces = unless(
  ["unshare", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child", "hostname", "elsewhere"],
  "start a process in namespaces of its own (unshare, root)",
);

/** A command under which a program runs as in a container of this machine: with a host name and process ids of its own. */
export function container(host: string): readonly string[] {
  return ["unshare", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child", "sh", "-c", 'hostname "$0"; exec "$@"', host];
}

/** The process that `pid` has started, as seen from here; what is asked of `unshare` it must be asked itself. */
export function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8"));
}
