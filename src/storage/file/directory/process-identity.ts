import { hostname } from "node:os";
import { basename, join } from "node:path";
import { errorCode, readProc, type FileStatus, type Files } from "../disk/files.js";
import { journalSequenceOf } from "../format/layout.js";

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
  const stat = (await hasOwnProc(files)) ? await readProc(files, `/proc/${pid}/stat`) : null;
  const boot = await bootId(files);
  // The second field is the command in parentheses and may hold anything; the rest are told from behind it.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ") ?? [];
  const [state, threads, ticks] = [fields[0], Number(fields[17]), fields[19]];
  // It has ended, threads and files and all; its parent has only not asked how. In a container it may never ask.
  if (state === "Z" && threads <= 1) return undefined;
  return ticks === undefined || boot === null ? null : `${boot} ${ticks}`;
}

/** A /proc of another namespace numbers its processes otherwise: what it says of one here is said of a stranger. */
async function hasOwnProc(files: Files): Promise<boolean> {
  return (await files.linkTarget("/proc/self")) === String(process.pid);
}

async function bootId(files: Files): Promise<string | null> {
  return (await readProc(files, "/proc/sys/kernel/random/boot_id"))?.trim() ?? null;
}

/**
 * Whether a process of this pid namespace has a file of the journal in the directory `journal` open: then it is the
 * server of this very directory, and not of one that this is a copy of. `null` where the system does not tell.
 */
export async function hasJournalOpen(files: Files, pid: number, journal: string): Promise<boolean | null> {
  if (!(await hasOwnProc(files))) return null;
  try {
    // What it has open first: a file that it changes to meanwhile is made after this.
    const open = await openJournalFiles(files, `/proc/${pid}/fd`);
    if (open === null) return null;
    const names = (await files.list(journal)).filter((name) => name.includes(".journal"));
    for (const name of names) {
      const here = (await files.status?.(join(journal, name))) ?? null;
      if (here !== null && open.some((file) => isSame(file, here))) return true;
    }
    return false;
  } catch (error) {
    if (["EACCES", "EPERM"].includes(errorCode(error))) return null;
    throw error;
  }
}

/** The files of a journal, of whatever directory, among the `descriptors` of a process; `null` where none are told. */
async function openJournalFiles(files: Files, descriptors: string): Promise<FileStatus[] | null> {
  const open: FileStatus[] = [];
  let isTold = false;
  for (const name of await files.list(descriptors)) {
    const path = join(descriptors, name);
    const target = await files.linkTarget(path);
    isTold ||= target !== null;
    if (target === null || journalSequenceOf(basename(target)) === null) continue;
    if (files.status === undefined) return null;
    const status = await files.status(path);
    if (status !== null) open.push(status);
  }
  return isTold ? open : null;
}

function isSame(one: FileStatus, other: FileStatus): boolean {
  return one.device === other.device && one.inode === other.inode;
}
