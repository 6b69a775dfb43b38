import { readFileSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import type { NotAsked } from "./question.js";

const GIB = 2 ** 30;
/** Files that a process has open beside its connections: the journal, segments, standard output. */
const OTHER_FILES = 500;

/** Why a process of this machine can't have so many connections; `null` when it can. */
export function lackOfConnections(connections: number): NotAsked | null {
  const most = openFilesIn(textOf("/proc/self/limits"));
  if (most >= connections + OTHER_FILES) return null;
  return { notAsked: `needs ${connections + OTHER_FILES} open files, and a process may have ${most}` };
}

/** Why so many bytes can't be written where the benchmark works; `null` when they can. */
export function lackOfDisk(bytes: number, directory = tmpdir()): NotAsked | null {
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize >= bytes) return null;
  return { notAsked: `needs ${(bytes / GIB).toFixed(1)} GiB of disk, and ${((bavail * bsize) / GIB).toFixed(1)} GiB are free` };
}

/** Why the memory of another process can't be told here; `null` when it can. */
export function lackOfMemoryFigures(status = textOf("/proc/self/status")): NotAsked | null {
  return /^VmRSS:\s+\d+ kB$/m.test(status) ? null : { notAsked: "this system does not tell the memory of a process (no VmRSS in /proc)" };
}

/** How many files a process may have open, by the text of its limits; without one, as many as wanted. */
export function openFilesIn(limits: string): number {
  const soft = /^Max open files\s+(\S+)/m.exec(limits)?.[1];
  return soft === undefined || soft === "unlimited" ? Infinity : Number(soft);
}

/** The text of a file of the system, or "" where there is none. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
