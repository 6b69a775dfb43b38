// Lets one process at a time change a file, by a lock that stands beside it.

import { randomBytes } from "node:crypto";
import { open, readFile, readlink, rename, unlink } from "node:fs/promises";
import { hostname } from "node:os";
import { targetOf, WatchedFile } from "../watched-file.js";

const LOCK_MODE = 0o600;
const POLL_MS = 25;
const LOCK_PATIENCE_MS = 5000;
const MAX_LOCK_BYTES = 4096;
const PID_NAMESPACE = "/proc/self/ns/pid";
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/**
 * Runs `change` while no other process does so for the same file: `FILE.lock` stands beside it meanwhile. Waits for its
 * turn, and takes over a lock whose process has ended. Rejects when that takes too long, with what to do about a lock
 * of which that can't be told.
 */
export async function withFileLock<T>(
  path: string,
  change: () => Promise<T>,
  patienceMs = LOCK_PATIENCE_MS,
): Promise<T> {
  const lock = `${await targetOf(path)}.lock`;
  const id = await takeLock(lock, performance.now() + patienceMs);
  try {
    return await change();
  } finally {
    // Somebody may have removed it, as it was said to be one that nobody has: then another's stands there, or none.
    if ((await holderOf(lock))?.id === id) await unlink(lock);
  }
}

/** Resolves to the id of the lock. */
async function takeLock(lock: string, untilMs: number): Promise<string> {
  for (;;) {
    const made = await makeLock(lock);
    if (made !== null) return made;
    const holder = await holderOf(lock);
    const taken = holder !== null && (await isGone(holder)) ? await takeOver(lock, holder, untilMs) : null;
    if (taken !== null) return taken;
    if (performance.now() > untilMs)
      throw new Error(`${lock} is there: another command changes the file; if none runs, remove ${lock}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Its id; `null` where somebody has made it. */
async function makeLock(lock: string): Promise<string | null> {
  const file = await open(lock, "wx", LOCK_MODE).catch((error: unknown) => {
    if (hasCode(error, "EEXIST")) return null;
    throw error;
  });
  if (file === null) return null;
  try {
    const holder = await thisHolder();
    await file.writeFile(`${JSON.stringify(holder)}\n`);
    return holder.id;
  } catch (error) {
    await unlink(lock).catch(() => undefined); // what failed is told by what is thrown
    throw error;
  } finally {
    await file.close();
  }
}

/**
 * Puts a lock of this process in the place of one that a dead process left; `null` where another did so. Who has the
 * lock named after that process's id of its own, and still finds that process in the lock, is the only one to rename.
 */
async function takeOver(lock: string, { id }: Holder, untilMs: number): Promise<string | null> {
  const own = `${lock}.${id}`;
  const taken = await takeLock(own, untilMs);
  if ((await holderOf(lock))?.id === id) {
    await rename(own, lock);
    return taken;
  }
  await unlink(own);
  return null;
}

/** Who made a lock. */
interface Holder {
  /** No other lock has it. */
  readonly id: string;
  readonly pid: number;
  readonly host: string;
  /** The boot of the machine and the tick in it; `null` where the system does not tell. */
  readonly startedAt: string | null;
  /** In which namespace the process id counts; `null` where the system does not tell. */
  readonly pidNamespace: string | null;
}

async function thisHolder(): Promise<Holder> {
  const startedAt = await startOf(process.pid);
  const pidNamespace = await readlink(PID_NAMESPACE).catch(() => null); // no Linux
  return { id: randomBytes(6).toString("hex"), pid: process.pid, host: hostname(), startedAt, pidNamespace };
}

/** `null` where the file says nobody: it is being written, or of an older version, which wrote nothing. */
async function holderOf(lock: string): Promise<Holder | null> {
  let value: unknown;
  try {
    value = JSON.parse(await WatchedFile.read(lock, MAX_LOCK_BYTES));
  } catch {
    return null; // also gone, or not to be read: who can't make it learns why
  }
  const fields = new Map<string, unknown>(Object.entries(value ?? {}));
  const text = (name: string): string | null => {
    const field = fields.get(name);
    return typeof field === "string" ? field : null;
  };
  const [id, host, pid] = [text("id"), text("host"), fields.get("pid")];
  if (id === null || !/^[0-9a-f]{12}$/.test(id) || host === null || typeof pid !== "number") return null;
  return { id, host, pid, startedAt: text("startedAt"), pidNamespace: text("pidNamespace") };
}

/** Whether the process has ended for certain. */
async function isGone({ pid, host, startedAt, pidNamespace }: Holder): Promise<boolean> {
  const self = await thisHolder();
  if (host !== self.host) return false;
  const bootOf = (start: string): string | undefined => start.split(" ", 1)[0];
  if (startedAt !== null && self.startedAt !== null && bootOf(startedAt) !== bootOf(self.startedAt)) return true;
  if (pidNamespace !== self.pidNamespace) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Another user's can't be sent a signal, and runs.
    if (hasCode(error, "ESRCH")) return true;
  }
  const now = await startOf(pid);
  return startedAt !== null && now !== null && now !== startedAt;
}

/** When a process started; `null` where that can't be told, empty where it has ended and its parent did not ask how. */
async function startOf(pid: number): Promise<string | null> {
  try {
    // A /proc of another namespace numbers its processes otherwise.
    if ((await readlink("/proc/self")) !== String(process.pid)) return null;
    const [stat, boot] = await Promise.all([readFile(`/proc/${pid}/stat`, "latin1"), readFile(BOOT_ID, "latin1")]);
    // The second field is the command in parentheses and may hold anything; the rest are told from behind it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = fields[19];
    if (fields[0] === "Z") return "";
    return ticks === undefined ? null : `${boot.trim()} ${ticks}`;
  } catch {
    return null; // no Linux, or it has just ended
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
