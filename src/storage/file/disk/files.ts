import {
  chmod,
  close,
  closeSync,
  constants,
  fdatasync,
  fstat,
  ftruncate,
  mkdir,
  mkdtemp,
  open,
  openSync,
  read,
  readdir,
  readlink,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  unlink,
  write,
} from "node:fs";
import type { Socket } from "node:net";
import { devNull, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import type { Allocate } from "../../storage.js";
import { DescriptorReserve } from "./descriptor-reserve.js";
import { replacementPath } from "../format/layout.js";
import { errorCode, isDiskFull } from "./file-errors.js";
import { listenOn, MAX_SOCKET_PATH_BYTES, probe, type Listener, type Reach } from "./sockets.js";

export { errorCode, errorPath, isBusy, isDiskFull, isPassing, isPathFault, isSystemError } from "./file-errors.js";

/**
 * The only door to the file system. Everything that storage does to a disk goes through a `Files`, so that a simulated
 * disk can stand in its place and fail, reorder or lose what was not synced.
 */
export interface Files {
  /** Descriptors for what is to be written or synced, where no others are left; only the system's own disk has them. */
  readonly reserve?: DescriptorReserve;
  /**
   * Opens a file: `read` needs it to exist, `write` makes it where it is missing, `log` also syncs each write, and so
   * does `replacement`, which empties it first.
   */
  open(path: string, mode: OpenMode): Promise<OpenFile>;
  /** Makes a file that must not exist yet. */
  createNew(path: string): Promise<OpenFile>;
  /** Names in a directory; empty when there is no such directory. */
  list(directory: string): Promise<string[]>;
  /** Makes a directory, and those above it. */
  makeDirectory(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Removes a directory and all in it; fine when it is not there. */
  removeTree(path: string): Promise<void>;
  /** Makes creations, renames and removals in a directory permanent. */
  syncDirectory(path: string): Promise<void>;
  /** Where a symbolic link points to; `null` where there is none, or the system does not tell. */
  linkTarget(path: string): Promise<string | null>;
  /**
   * Makes a Unix socket that only this user may connect to: whoever sees it at `path` finds a listener behind it.
   * Removing it is the caller's.
   */
  listen(path: string, accept: (connection: Socket) => void): Promise<Listener>;
  /** Finds out whether a process listens on the socket at `path`, in whatever container of this machine. */
  reach(path: string): Promise<Reach>;
}

/** Threads that the platform has for file operations: as many of them can be under way at a time. */
export function poolThreads(): number {
  return Number(process.env["UV_THREADPOOL_SIZE"]) || 4;
}

/** How a file is opened. */
export type OpenMode = "read" | "write" | "log" | "replacement";

/** Whether a file that is opened so has each write synced. */
export function syncsWrites(mode: OpenMode): boolean {
  return mode === "log" || mode === "replacement";
}

/** An open file. Positions and lengths in bytes. */
export interface OpenFile {
  /** Reads up to `length` bytes at `position` into `target` from `offset`; resolves to how many, 0 at the end. */
  read(target: Buffer, offset: number, length: number, position: number): Promise<number>;
  /** Writes all of `bytes` at `position`. */
  write(bytes: Buffer, position: number): Promise<void>;
  /**
   * Like `write`, without a promise: `done` gets the error, or `null` when all is written (and synced, where {@link
   * syncsWrites}).
   */
  writeThen(bytes: Buffer, position: number, done: (error: Error | null) => void): void;
  /** Makes the file's bytes and length permanent. */
  sync(): Promise<void>;
  truncate(length: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

/**
 * A sync failed, whatever the reason: what it covered may be neither on the disk nor in memory any more, and the next
 * sync would not say so. That passes for nobody, so it has no code.
 */
class SyncError extends Error {
  override readonly name = "SyncError";
}

function syncFailed(error: Error): SyncError {
  return new SyncError(`a sync failed: ${error.message}`, { cause: error });
}

/** The real file system. Without `durable` nothing waits for the disk: syncs do nothing. */
export function systemFiles(durable: boolean): Files {
  const reserve = new DescriptorReserve({ open: () => openSync(devNull, "r"), close: closeSync });
  const dataSync = durable && constants.O_DSYNC !== undefined ? constants.O_DSYNC : 0;
  // Where the system has no O_DSYNC, a write to the log is followed by a sync of its own.
  const syncAfterWrite = durable && dataSync === 0;
  const flags: Record<OpenMode, number> = {
    // What somebody put in a file's place, like a pipe, must not be waited for.
    read: constants.O_RDONLY | (constants.O_NONBLOCK ?? 0),
    write: constants.O_RDWR | constants.O_CREAT,
    log: constants.O_RDWR | constants.O_CREAT | dataSync,
    replacement: constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | dataSync,
  };
  const openFile = async (
    path: string,
    bits: number,
    how: { readonly isRead?: boolean; readonly syncsWrites?: boolean; readonly closesAtOnce?: boolean } = {},
  ): Promise<OpenFile> => {
    const opening = promised<number>((done) => open(path, bits, 0o644, done));
    const descriptor = await (how.isRead === true
      ? opening
      : opening.catch((error: unknown) => orSpare(error, reserve, () => openSync(path, bits, 0o644))));
    return new SystemFile(descriptor, { durable, reserve, syncsWrites: false, closesAtOnce: false, ...how });
  };
  return {
    reserve,
    open: (path, mode) =>
      openFile(path, flags[mode], {
        isRead: mode === "read",
        syncsWrites: syncAfterWrite && syncsWrites(mode),
        closesAtOnce: durable && mode === "replacement",
      }),
    createNew: (path) => openFile(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL),
    list: (directory) =>
      promised<string[]>((done) => readdir(directory, done)).catch((error: unknown) => {
        if (errorCode(error) === "ENOENT") return [];
        throw error;
      }),
    makeDirectory,
    rename: (from, to) => completed((done) => rename(from, to, done)),
    unlink: (path) => completed((done) => unlink(path, done)),
    removeTree: (path) => completed((done) => rm(path, { recursive: true, force: true }, done)),
    async syncDirectory(path) {
      if (!durable) return;
      const directory = await openFile(path, constants.O_RDONLY, { closesAtOnce: true });
      try {
        await directory.sync();
      } finally {
        await directory.close();
      }
    },
    linkTarget,
    listen: listenPrivately,
    reach: (path) => onShortPath(path, probe),
  };
}

async function linkTarget(path: string): Promise<string | null> {
  try {
    return await promised<string>((done) => readlink(path, done));
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EINVAL", "EACCES", "EPERM"].includes(errorCode(error))) return null;
    throw error;
  }
}

/** The socket gets its name when it listens and its mode is set: nobody takes it half made for a leftover. */
async function listenPrivately(path: string, accept: (connection: Socket) => void): Promise<Listener> {
  const unready = replacementPath(path);
  const listener = await onShortPath(unready, (short) => listenOn(short, accept));
  try {
    await completed((done) => chmod(unready, 0o600, done));
    await completed((done) => rename(unready, path, done));
    return listener;
  } catch (error) {
    await listener.close();
    await completed((done) => rm(unready, { force: true }, done));
    throw error;
  }
}

/** Gives `run` a path of the same file that a socket's address has room for: the directory's own may be longer. */
async function onShortPath<T>(path: string, run: (short: string) => Promise<T>): Promise<T> {
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) return run(path);
  const directory = await promised<number>((done) => open(dirname(path), constants.O_RDONLY, done));
  try {
    const viaDescriptor = `/proc/self/fd/${directory}`;
    if ((await linkTarget(viaDescriptor)) !== null) return await run(join(viaDescriptor, basename(path)));
  } finally {
    closeSync(directory);
  }
  return viaLink(path, run);
}

/** The same where the system has no /proc: through a symbolic link that is there for as long as the call. */
async function viaLink<T>(path: string, run: (short: string) => Promise<T>): Promise<T> {
  const place = await promised<string>((done) => mkdtemp(join(tmpdir(), "sd-"), done));
  const link = join(place, "d");
  try {
    await completed((done) => symlink(resolve(dirname(path)), link, done));
    return await run(join(link, basename(path)));
  } finally {
    await completed((done) => rm(link, { force: true }, done));
    await completed((done) => rmdir(place, done));
  }
}

/** At once: a connection that is accepted meanwhile would take the spare's place. */
function orSpare(error: unknown, reserve: DescriptorReserve, openAtOnce: () => number): number {
  if (!["EMFILE", "ENFILE"].includes(errorCode(error))) throw error;
  return reserve.spend(openAtOnce);
}

/** Node's own recursive mkdir never ends where a directory exists but takes no entries, as in /proc. */
async function makeDirectory(path: string): Promise<void> {
  const make = (): Promise<void> => completed((done) => mkdir(path, done));
  try {
    await make();
  } catch (error) {
    const parent = dirname(path);
    if (errorCode(error) === "EEXIST") return;
    if (errorCode(error) !== "ENOENT" || parent === path) throw error;
    await makeDirectory(parent);
    await make();
  }
}

interface SystemFileOptions {
  readonly durable: boolean;
  readonly reserve: DescriptorReserve;
  readonly syncsWrites: boolean;
  /** Closed without a thread, which costs ten times the call: all of it is synced, and nothing has to be waited for. */
  readonly closesAtOnce: boolean;
}

class SystemFile implements OpenFile {
  readonly #descriptor: number;
  readonly #options: SystemFileOptions;

  constructor(descriptor: number, options: SystemFileOptions) {
    this.#descriptor = descriptor;
    this.#options = options;
  }

  read(target: Buffer, offset: number, length: number, position: number): Promise<number> {
    return promised((done) => read(this.#descriptor, target, offset, length, position, done));
  }

  write(bytes: Buffer, position: number): Promise<void> {
    return completed((done) => this.writeThen(bytes, position, done));
  }

  writeThen(bytes: Buffer, position: number, done: (error: Error | null) => void): void {
    write(this.#descriptor, bytes, 0, bytes.length, position, (error, written) => {
      if (error !== null) done(error);
      else if (written < bytes.length) this.writeThen(bytes.subarray(written), position + written, done);
      else if (this.#options.syncsWrites)
        fdatasync(this.#descriptor, (failed) => done(failed === null ? null : syncFailed(failed)));
      else done(null);
    });
  }

  async sync(): Promise<void> {
    if (!this.#options.durable) return;
    await completed((done) => fdatasync(this.#descriptor, done)).catch((error: Error) => {
      throw syncFailed(error);
    });
  }

  truncate(length: number): Promise<void> {
    return completed((done) => ftruncate(this.#descriptor, length, done));
  }

  async size(): Promise<number> {
    const stats = await promised<{ size: number }>((done) => fstat(this.#descriptor, done));
    // What the system tells comes as a float: one alone makes a float, in memory of its own, of every position like it.
    return Math.trunc(stats.size);
  }

  async close(): Promise<void> {
    const { reserve, closesAtOnce } = this.#options;
    const { isShort } = reserve;
    if (closesAtOnce || isShort) closeSync(this.#descriptor);
    else await completed((done) => close(this.#descriptor, done));
    if (isShort) reserve.replenish();
  }
}

function promised<T>(call: (done: (error: Error | null, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => call((error, value) => (error === null ? resolve(value) : reject(error))));
}

function completed(call: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) =>
    call((error) => (error === null || error === undefined ? resolve() : reject(error))),
  );
}

/** The user that a file belongs to. */
export async function ownerOf(path: string): Promise<number> {
  return (await promised<{ uid: number }>((done) => stat(path, done))).uid;
}

/** Removes a file; fine when it is not there. */
export async function removeFile(files: Files, path: string): Promise<void> {
  try {
    await files.unlink(path);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
}

/** Reads a whole file; `null` when there is none. */
export async function readWhole(files: Files, path: string): Promise<Buffer | null> {
  let file: OpenFile;
  try {
    file = await files.open(path, "read");
  } catch (error) {
    if (errorCode(error) === "ENOENT" || errorCode(error) === "ENOTDIR") return null;
    throw error;
  }
  try {
    return await readFully(file, 0, await file.size());
  } finally {
    await file.close();
  }
}

/** Reads `length` bytes at `position`; fewer only where the file ends. */
export async function readFully(
  file: OpenFile,
  position: number,
  length: number,
  allocate: Allocate = Buffer.allocUnsafeSlow,
): Promise<Buffer> {
  const target = allocate(length);
  let filled = 0;
  while (filled < length) {
    const count = await file.read(target, filled, length - filled, position + filled);
    if (count === 0) break;
    filled += count;
  }
  return target.subarray(0, filled);
}

/** What the system says in a short file of /proc, `null` where it does not. Such files say that they are empty. */
export async function readProc(files: Files, path: string): Promise<string | null> {
  try {
    const file = await files.open(path, "read");
    try {
      const target = Buffer.alloc(4096);
      return target.toString("utf8", 0, await file.read(target, 0, target.length, 0));
    } finally {
      await file.close();
    }
  } catch (error) {
    if (["ENOENT", "EACCES", "EPERM", "ESRCH"].includes(errorCode(error))) return null;
    throw error;
  }
}

/** What does not fit whole is cut off again: it would take the room that others still find. */
export async function writeOrCutOff(file: OpenFile, bytes: Buffer, position: number): Promise<void> {
  try {
    await file.write(bytes, position);
  } catch (error) {
    if (isDiskFull(error) && (await file.size()) > position) await file.truncate(position);
    throw error;
  }
}
