// Which process on which machine has made a lock, and whether it still runs.

import { execFile } from "node:child_process";
import { hostname } from "node:os";

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

/** How `/proc` is read. */
export interface Proc {
  /** The beginning of a file; `null` where there is none, or this user may not read it. */
  readonly text: (path: string) => Promise<string | null>;
  /** Where a symbolic link points; `null` likewise. */
  readonly linkTarget: (path: string) => Promise<string | null>;
}

/** What is told of a process by who looks for it: whether it runs, or why that can't be seen from here. */
export type ProcessStanding = "gone" | "alive" | "on-another-machine" | "in-another-namespace";

/** Whether a process runs, and when it started: `undefined` for not, `null` where its start can't be told. */
export type StartedAtOf = (pid: number) => Promise<string | null | undefined>;

/** This process. */
export async function thisProcess(proc: Proc): Promise<ProcessIdentity> {
  return {
    pid: process.pid,
    host: hostname(),
    startedAt: (await processStart(proc, process.pid)) ?? null,
    boot: await bootId(proc),
    pidNamespace: await proc.linkTarget("/proc/self/ns/pid"),
  };
}

/**
 * When a process of this pid namespace started: clock ticks since boot, from /proc, together with the boot's id;
 * `undefined` when there is no such process, `null` where that can't be told.
 */
export async function processStart(proc: Proc, pid: number): Promise<string | null | undefined> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Another user's can't be sent a signal, and runs.
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return undefined;
  }
  if (!(await hasOwnProc(proc))) return null;
  const stat = await proc.text(`/proc/${pid}/stat`);
  const boot = await bootId(proc);
  // The second field is the command in parentheses and may hold anything; the rest are told from behind it.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ") ?? [];
  const [state, threads, ticks] = [fields[0], Number(fields[17]), fields[19]];
  // It has ended, threads and files and all; its parent has only not asked how. In a container it may never ask.
  if (state === "Z" && threads <= 1) return undefined;
  return ticks === undefined || boot === null ? null : `${boot} ${ticks}`;
}

/** A /proc of another namespace numbers its processes otherwise: what it says of one here is said of a stranger. */
export async function hasOwnProc(proc: Pick<Proc, "linkTarget">): Promise<boolean> {
  return (await proc.linkTarget("/proc/self")) === String(process.pid);
}

async function bootId(proc: Proc): Promise<string | null> {
  const told = (await proc.text("/proc/sys/kernel/random/boot_id"))?.trim() ?? null;
  return told === null && process.platform === "darwin" ? bootSession() : told;
}

/** The same of a Mac, which has no /proc; its name may change with the network. */
function bootSession(): Promise<string | null> {
  return new Promise((resolve) =>
    execFile("sysctl", ["-n", "kern.bootsessionuuid"], (fault, told) =>
      resolve(fault === null ? told.trim() || null : null),
    ),
  );
}

/** Whether a process still runs, as `self` sees it. */
export async function processStanding(
  other: ProcessIdentity,
  self: ProcessIdentity,
  startedAtOf: StartedAtOf,
): Promise<ProcessStanding> {
  const machine = machineOf(other, self);
  if (machine === "started-again") return "gone";
  if (machine === "another") return "on-another-machine";
  if (isElsewhere(other, self)) return "in-another-namespace";
  return (await isRunning(other, startedAtOf)) ? "alive" : "gone";
}

/** On which machine a process ran. The host's name matters only where files are shared by machines. */
export function machineOf(other: ProcessIdentity, self: ProcessIdentity): "this" | "started-again" | "another" {
  if (other.boot === null || self.boot === null) return other.host === self.host ? "this" : "another";
  if (other.boot === self.boot) return "this";
  return other.host === self.host ? "started-again" : "another";
}

/** Whether a process id is counted in another pid namespace than that of `self`, as far as both are told. */
export function isElsewhere(other: ProcessIdentity, self: ProcessIdentity): boolean {
  return other.pidNamespace !== null && self.pidNamespace !== null && other.pidNamespace !== self.pidNamespace;
}

/** Whether a process of this machine and this namespace runs, as far as can be told. */
async function isRunning({ pid, startedAt }: ProcessIdentity, startedAtOf: StartedAtOf): Promise<boolean> {
  const now = await startedAtOf(pid);
  if (now === undefined) return false;
  return startedAt === null || now === null || now === startedAt;
}

/** Whether a process has ended whose id certainly counts here: on this machine, in this pid namespace. */
export async function hasEndedHere(
  other: ProcessIdentity,
  self: ProcessIdentity,
  startedAtOf: StartedAtOf,
): Promise<boolean> {
  return other.pidNamespace === self.pidNamespace && !(await isRunning(other, startedAtOf));
}

/** The process that the fields of a file's JSON name; `null` where they name none. */
export function decodeIdentity(fields: ReadonlyMap<string, unknown>): ProcessIdentity | null {
  const text = (name: string): string | null => {
    const field = fields.get(name);
    return typeof field === "string" ? field : null;
  };
  const [pid, host] = [fields.get("pid"), text("host")];
  if (typeof pid !== "number" || host === null) return null;
  return { pid, host, startedAt: text("startedAt"), boot: text("boot"), pidNamespace: text("pidNamespace") };
}

/** The fields of a file that is JSON; none where it is another, or cut short. */
export function fieldsOf(json: string): ReadonlyMap<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    return new Map(Object.entries(value ?? {}));
  } catch {
    return new Map();
  }
}
