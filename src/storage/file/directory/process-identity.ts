import { hostname } from "node:os";
import { errorCode, readProc, type Files } from "../disk/files.js";

/** Which process on which machine. What the system does not tell is `null`. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  /** When the process started, so that a process id used again is not taken for its first user. */
  readonly startedAt: string | null;
  /** The machine's id from one start to the next: the same id is the same machine, whatever it is called. */
  readonly boot: string | null;
  /** In which namespace the process id counts: each container has its own. */
  readonly pidNamespace: string | null;
}

/** This process. */
export async function thisProcess(files: Files): Promise<ProcessIdentity> {
  return {
    pid: process.pid,
    host: hostname(),
    startedAt: (await processStart(files, process.pid)) ?? null,
    boot: await bootId(files),
    pidNamespace: await files.linkTarget("/proc/self/ns/pid"),
  };
}

/**
 * When a process of this pid namespace started: clock ticks since boot, from /proc, together with the boot's id;
 * `undefined` when there is no such process, `null` where that can't be told.
 */
export async function processStart(files: Files, pid: number): Promise<string | null | undefined> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errorCode(error) === "ESRCH") return undefined;
  }
  // A /proc of another namespace numbers its processes otherwise: what it says of this one is said of a stranger.
  const isOurs = (await files.linkTarget("/proc/self")) === String(process.pid);
  const stat = isOurs ? await readProc(files, `/proc/${pid}/stat`) : null;
  const boot = await bootId(files);
  // The second field is the command in parentheses and may hold anything; the rest are told from behind it.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ") ?? [];
  const [state, threads, ticks] = [fields[0], Number(fields[17]), fields[19]];
  // It has ended, threads and files and all; its parent has only not asked how. In a container it may never ask.
  if (state === "Z" && threads <= 1) return undefined;
  return ticks === undefined || boot === null ? null : `${boot} ${ticks}`;
}

async function bootId(files: Files): Promise<string | null> {
  return (await readProc(files, "/proc/sys/kernel/random/boot_id"))?.trim() ?? null;
}
