// Lets one process at a time change a file, by a lock that stands beside it.

import { randomBytes } from "node:crypto";
import { open, readFile, readlink, rename, unlink } from "node:fs/promises";
import { targetOf, WatchedFile } from "../watched-file.js";
import { decodeIdentity, fieldsOf, hasEndedHere, machineOf, processStart, thisProcess } from "./process-identity.js";
import type { Proc, ProcessIdentity } from "./process-identity.js";

const LOCK_MODE = 0o600;
const POLL_MS = 25;
const LOCK_PATIENCE_MS = 5000;
const MAX_LOCK_BYTES = 4096;
const ID_BYTES = 6;
const ID = /^[0-9a-f]{12}$/;
const PROC: Proc = {
  text: (path) => readFile(path, "latin1").catch(() => null), // no Linux, or the process has just ended
  linkTarget: (path) => readlink(path).catch(() => null), // likewise
};

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
    const holder: Holder = { id: randomBytes(ID_BYTES).toString("hex"), ...(await thisProcess(PROC)) };
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
interface Holder extends ProcessIdentity {
  /** No other lock has it. */
  readonly id: string;
}

/** `null` where the file says nobody: it is being written, or of an older version, which wrote nothing. */
async function holderOf(lock: string): Promise<Holder | null> {
  // Gone, or not to be read: who can't make it learns why.
  const fields = fieldsOf(await WatchedFile.read(lock, MAX_LOCK_BYTES).catch(() => ""));
  const [identity, id] = [decodeIdentity(fields), fields.get("id")];
  return identity !== null && typeof id === "string" && ID.test(id) ? { id, ...identity } : null;
}

/** Whether the process has ended for certain. */
async function isGone(holder: Holder): Promise<boolean> {
  const self = await thisProcess(PROC);
  const machine = machineOf(holder, self);
  if (machine !== "this") return machine === "started-again";
  return hasEndedHere(holder, self, (pid) => processStart(PROC, pid));
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
