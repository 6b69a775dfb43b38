import { hostname } from "node:os";
import type { Log } from "../../ops/log.js";
import type { Files } from "./files.js";
import { errorCode, isBusy, readProc, readWhole } from "./files.js";

/** The data directory can't be used; the message is one line for a human. */
export class DirectoryError extends Error {
  override readonly name = "DirectoryError";
}

/** Who holds a lock. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  /** When the process started, as the system tells it, so that a process id used again is not taken for its first user; `null` where it is not told. */
  readonly startedAt: string | null;
}

/** What a lock needs to know of the machine. */
export interface LockOptions {
  readonly files: Files;
  readonly path: string;
  readonly self: LockHolder;
  /** When the process with this id started; `undefined` when there is none, `null` where that can't be told. */
  readonly startedAtOf: (pid: number) => Promise<string | null | undefined>;
  /** Takes the lock of another host away, whose processes can't be seen from here. */
  readonly force: boolean;
}

/** Locks a directory for this process; returns what gives it back. Throws {@link DirectoryError}. */
export async function lockDirectory(files: Files, path: string, { force, log }: { readonly force: boolean; readonly log: Log }): Promise<() => Promise<void>> {
  const options = await optionsFor(files, path, force);
  const holder = force ? await holderOf(options) : null;
  const unlock = await takeLock(options);
  if (holder !== null && holder.host !== options.self.host) {
    log.warn("the lock of another host was taken away: its server must not be running", { file: path, pid: holder.pid, host: holder.host });
  }
  return unlock;
}

/** Makes sure that nobody has a directory open, and leaves its lock as it is. Throws {@link DirectoryError}. */
export async function assertUnlocked(files: Files, path: string, force: boolean): Promise<void> {
  const options = await optionsFor(files, path, force);
  const bytes = await readWhole(files, path);
  if (bytes !== null) await assertStale(options, bytes);
}

async function optionsFor(files: Files, path: string, force: boolean): Promise<LockOptions> {
  return { files, path, self: await thisProcess(files), startedAtOf: (pid) => processStart(files, pid), force };
}

async function holderOf({ files, path }: LockOptions): Promise<LockHolder | null> {
  const bytes = await readWhole(files, path);
  return bytes === null ? null : parseHolder(bytes);
}

/** Takes the directory's lock, also one that a crash left; returns what gives it back. Throws {@link DirectoryError}. */
export async function takeLock(options: LockOptions): Promise<() => Promise<void>> {
  const { files, path, self } = options;
  for (let attempt = 0; attempt < 3; attempt += 1) {
    if (await createLock(options)) return () => giveBack(options);
    const bytes = await readWhole(files, path);
    if (bytes === null) continue;
    await assertStale(options, bytes);
    await removeStale(options, bytes);
  }
  throw new DirectoryError(`the directory's lock changes hands too fast (${path}, process ${self.pid})`);
}

async function assertStale({ path, self, startedAtOf, force }: LockOptions, bytes: Buffer): Promise<void> {
  const holder = parseHolder(bytes);
  if (holder === null) return;
  const isHere = holder.host === self.host;
  if (isHere ? !(await isAlive(holder, startedAtOf)) : force) return;
  throw new DirectoryError(`the directory is in use by process ${holder.pid} on ${holder.host} (${path})${adviceOn(isHere, force)}`);
}

function adviceOn(isHere: boolean, force: boolean): string {
  if (!isHere) return ": whether that process still runs can't be seen from here; once it certainly does not, --force-unlock takes its lock away";
  return force ? ": it runs on this host, where --force-unlock overrides nobody; stop it first" : "";
}

/** Takes the lock away, unless somebody forced it meanwhile: then it is theirs. One that can't be read now is left: the next start finds it stale. */
async function giveBack({ files, path, self }: LockOptions): Promise<void> {
  const bytes = await readWhole(files, path).catch((error: unknown) => {
    if (isBusy(error)) return null;
    throw error;
  });
  if (bytes?.equals(linesOf(self)) === true) await files.unlink(path);
}

function linesOf(self: LockHolder): Buffer {
  return Buffer.from(`${JSON.stringify(self)}\n`);
}

async function createLock({ files, path, self }: LockOptions): Promise<boolean> {
  try {
    const file = await files.createNew(path);
    try {
      await file.write(linesOf(self), 0);
      await file.sync();
    } catch (error) {
      await files.unlink(path);
      throw error;
    } finally {
      await file.close();
    }
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  }
}

/** Takes a stale lock away. When somebody else was faster and this is theirs, it goes back. */
async function removeStale({ files, path, self }: LockOptions, seen: Buffer): Promise<void> {
  const aside = `${path}.stale-${self.pid}`;
  try {
    await files.rename(path, aside);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return;
    throw error;
  }
  const moved = await readWhole(files, aside);
  if (moved !== null && !moved.equals(seen)) await files.rename(aside, path);
  else await files.unlink(aside);
}

function parseHolder(bytes: Buffer): LockHolder | null {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    if (typeof value !== "object" || value === null || !("pid" in value) || !("host" in value)) return null;
    const startedAt = "startedAt" in value && typeof value.startedAt === "string" ? value.startedAt : null;
    return typeof value.pid === "number" && typeof value.host === "string" ? { pid: value.pid, host: value.host, startedAt } : null;
  } catch {
    // A lock that was cut short by a crash names nobody.
    return null;
  }
}

async function isAlive(holder: LockHolder, startedAtOf: LockOptions["startedAtOf"]): Promise<boolean> {
  const startedAt = await startedAtOf(holder.pid);
  if (startedAt === undefined) return false;
  return holder.startedAt === null || startedAt === null || startedAt === holder.startedAt;
}

/** This process as a lock holder. */
export async function thisProcess(files: Files): Promise<LockHolder> {
  return { pid: process.pid, host: hostname(), startedAt: (await processStart(files, process.pid)) ?? null };
}

/** When a process of this machine started: clock ticks since boot, from /proc, together with the boot's id. */
export async function processStart(files: Files, pid: number): Promise<string | null | undefined> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errorCode(error) === "ESRCH") return undefined;
  }
  const stat = await readProc(files, `/proc/${pid}/stat`);
  const boot = await readProc(files, "/proc/sys/kernel/random/boot_id");
  // The second field is the command in parentheses and may hold anything; the rest are told from behind it.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ") ?? [];
  const [state, threads, ticks] = [fields[0], Number(fields[17]), fields[19]];
  // It has ended, threads and files and all; its parent has only not asked how. In a container it may never ask.
  if (state === "Z" && threads <= 1) return undefined;
  return ticks === undefined || boot === null ? null : `${boot.trim()} ${ticks}`;
}
