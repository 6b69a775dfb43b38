import {
  chmod,
  close,
  closeSync,
  constants,
  fchmod,
  fdatasync,
  fstat,
  fstatSync,
  ftruncate,
  link,
  lstat,
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
  type Stats,
} from "node:fs";
import type { Socket } from "node:net";
import { devNull, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { DescriptorReserve } from "./descriptor-reserve.js";
import { replacementPath } from "../format/layout.js";
import { errorCode, noFile } from "./file-errors.js";
import type { FileStatus, OpenFile, OpenMode, SystemFiles } from "./file-system.js";
import { connectOn, listenOn, MAX_SOCKET_PATH_BYTES, probe, type Listener } from "./sockets.js";

export {
  errorCode,
  errorPath,
  isBusy,
  isDiskFull,
  isPassing,
  isPathFault,
  isSystemError,
  noFile,
  retryMsAfter,
} from "./file-errors.js";
export type { Files, FileStatus, OpenFile, OpenMode, SystemFiles } from "./file-system.js";
export { readFully, readProc, readWhole, removeFile, sizeOf, writeOrCutOff } from "./whole-files.js";

/** Not every system has it. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;

/** Threads that the platform has for file operations: as many of them can be under way at a time. */
export function poolThreads(): number {
  return Number(process.env["UV_THREADPOOL_SIZE"]) || 4;
}

/** Whether a file that is opened so has each write synced. */
export function syncsWrites(mode: OpenMode): boolean {
  return mode === "log" || mode === "replacement";
}

/** Whether a file that is opened so has to be there. */
export function mustExist(mode: OpenMode): boolean {
  return mode === "read" || mode === "whole" || mode === "plain";
}

/**
 * A sync failed, whatever the reason: what it covered may be neither on the disk nor in memory any more, and the next
 * sync would not say so. That passes for nobody, so it has no code.
 */
export class SyncError extends Error {
  override readonly name = "SyncError";
}

function syncFailed(error: Error): SyncError {
  return new SyncError(`a sync failed: ${error.message}`, { cause: error });
}

/** The flag that makes each write durable; 0 where there is none. On a Mac it leaves out the cache of the drive. */
function syncOfWrites(platform: NodeJS.Platform): number {
  return platform === "darwin" || constants.O_DSYNC === undefined ? 0 : constants.O_DSYNC;
}

/**
 * The real file system. Without `durable` nothing waits for the disk: syncs do nothing. What is made here never has the
 * permissions `withheld`, whatever the umask allows.
 */
export function systemFiles(durable: boolean, withheld = 0): SystemFiles {
  const fileMode = 0o644 & ~withheld;
  const reserve = new DescriptorReserve({ open: () => openSync(devNull, "r"), close: closeSync });
  const dataSync = durable ? syncOfWrites(process.platform) : 0;
  // Where the system has none, a write to the log is followed by a sync of its own.
  const syncAfterWrite = durable && dataSync === 0;
  const flags = flagsWith(dataSync);
  const openFile = async (
    path: string,
    bits: number,
    how: Partial<Omit<SystemFileOptions, "durable" | "reserve">> & {
      readonly isRead?: boolean;
      readonly isPlain?: boolean;
    } = {},
  ): Promise<OpenFile> => {
    const opening = promised<number>((done) => open(path, bits, fileMode, done));
    const descriptor = await (how.isRead === true
      ? opening
      : opening.catch((error: unknown) => orSpare(error, reserve, () => openSync(path, bits, fileMode))));
    if (how.isPlain === true) assertPlain(descriptor, path);
    return new SystemFile(descriptor, { durable, reserve, ...NO_FLAGS, ...how });
  };
  const openAs = (path: string, mode: OpenMode): Promise<OpenFile> =>
    openFile(path, flags[mode], {
      isRead: mustExist(mode),
      isPlain: mode === "plain",
      syncsWrites: syncAfterWrite && syncsWrites(mode),
      isSizedAtOnce: mode === "whole",
      closesAtOnce: mode === "whole" || (durable && mode === "replacement"),
    });
  return {
    reserve,
    open: (path, mode) =>
      mode !== "replacement"
        ? openAs(path, mode)
        : openAs(path, mode).catch(async (error: unknown) => {
            if (errorCode(error) !== "EEXIST") throw error;
            // Emptied by making it anew: what is there may be a link, or have another name.
            await completed((done) => unlink(path, done));
            return openAs(path, mode);
          }),
    createNew: (path) => openFile(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL),
    list,
    makeDirectory: (path) => makeDirectory(path, 0o777 & ~withheld),
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
    letAllRead,
    status: (path) => statusOf(path, stat),
    linkStatus: (path) => statusOf(path, lstat),
    link: (from, to) => completed((done) => link(from, to, done)),
    connect: (path) => onShortPath(path, connectOn),
  };
}

/** How the system is to open a file; what is to be synced with each write is so by `dataSync`. */
function flagsWith(dataSync: number): Record<OpenMode, number> {
  return {
    // What somebody put in a file's place, like a pipe, must not be waited for.
    read: constants.O_RDONLY | (constants.O_NONBLOCK ?? 0),
    whole: constants.O_RDONLY | (constants.O_NONBLOCK ?? 0),
    plain: constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | NO_FOLLOW,
    // Nor is anything written through a link that somebody put there: root would write wherever it leads.
    write: constants.O_RDWR | constants.O_CREAT | NO_FOLLOW,
    log: constants.O_RDWR | constants.O_CREAT | NO_FOLLOW | dataSync,
    replacement: constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | dataSync,
  };
}

async function statusOf(path: string, look: typeof stat | typeof lstat): Promise<FileStatus | null> {
  try {
    const stats = await promised<Stats>((done) => look(path, done));
    return {
      size: stats.size,
      kind: kindOf(stats),
      owner: stats.uid,
      device: stats.dev,
      inode: stats.ino,
      links: stats.nlink,
    };
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(error))) return null;
    throw error;
  }
}

function kindOf(stats: Stats): FileStatus["kind"] {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "directory";
  return stats.isSymbolicLink() ? "link" : "other";
}

/** Closes what is no file, and throws what says so. */
function assertPlain(descriptor: number, path: string): void {
  const kind = kindOf(fstatSync(descriptor));
  if (kind === "file") return;
  closeSync(descriptor);
  throw noFile(path, kind);
}

/**
 * What a Mac and Windows leave in a folder that somebody has looked into. Nothing of ours is called so: the directory
 * of a stream begins with no dot and has no capitals.
 */
const LEFT_BY_DESKTOPS = /^(?:\.DS_Store|\._.*|Thumbs\.db)$/;

async function list(directory: string): Promise<string[]> {
  try {
    const names = await promised<string[]>((done) => readdir(directory, done));
    return names.filter((name) => !LEFT_BY_DESKTOPS.test(name));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  }
}

async function linkTarget(path: string): Promise<string | null> {
  try {
    return await promised<string>((done) => readlink(path, done));
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EINVAL", "EACCES", "EPERM"].includes(errorCode(error))) return null;
    throw error;
  }
}

/** A file system without permissions has the same for all its files. */
async function letAllRead(path: string): Promise<void> {
  // Not by its path: by then a link may be there, to what nobody but root may read.
  const descriptor = await promised<number>((done) => open(path, constants.O_RDONLY | NO_FOLLOW, done));
  try {
    await completed((done) => fchmod(descriptor, 0o644, done));
  } catch (error) {
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(errorCode(error))) throw error;
  } finally {
    closeSync(descriptor);
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
async function makeDirectory(path: string, mode: number): Promise<void> {
  const make = (): Promise<void> => completed((done) => mkdir(path, { mode }, done));
  try {
    await make();
  } catch (error) {
    const parent = dirname(path);
    // A symbolic link is in the way of mkdir, and leads to nothing where its disk is not mounted.
    if (errorCode(error) === "EEXIST") return void (await promised((done) => stat(path, done)));
    if (errorCode(error) !== "ENOENT" || parent === path) throw error;
    await makeDirectory(parent, mode);
    await make();
  }
}

interface SystemFileOptions {
  readonly durable: boolean;
  readonly reserve: DescriptorReserve;
  readonly syncsWrites: boolean;
  /** Its size is asked for without a thread: the system knows it of a file that was just opened. */
  readonly isSizedAtOnce: boolean;
  /** Closed without a thread, which costs ten times the call: all of it is synced or was only read. */
  readonly closesAtOnce: boolean;
}

const NO_FLAGS = { syncsWrites: false, isSizedAtOnce: false, closesAtOnce: false };

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
    const stats = this.#options.isSizedAtOnce
      ? fstatSync(this.#descriptor)
      : await promised<{ size: number }>((done) => fstat(this.#descriptor, done));
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
  return (await promised<Stats>((done) => stat(path, done))).uid;
}

/** What others than a file's owner may not do with it, as bits of its mode; 0 where nothing can be seen there. */
export async function withheldBy(path: string): Promise<number> {
  try {
    return ~(await promised<Stats>((done) => stat(path, done))).mode & 0o077;
  } catch (error) {
    // Whoever opens it says what is wrong.
    if (["ENOENT", "ENOTDIR", "EACCES", "ELOOP", "ENAMETOOLONG"].includes(errorCode(error))) return 0;
    throw error;
  }
}
