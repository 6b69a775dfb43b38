import { basename, join } from "node:path";
import { hasOwnProc, type Proc } from "../../../ops/lock/process-identity.js";
import { errorCode, readProc, type FileStatus, type Files } from "../disk/files.js";
import { journalSequenceOf } from "../format/layout.js";

/** The `/proc` of a file system. */
export function procOf(files: Files): Proc {
  return { text: (path) => readProc(files, path), linkTarget: (path) => files.linkTarget(path) };
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
