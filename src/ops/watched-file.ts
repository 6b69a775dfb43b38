// Reads, watches and replaces small files of configuration: the auth file, key sets, certificates.

import { isUtf8 } from "node:buffer";
import { randomBytes } from "node:crypto";
import { constants, fstatSync, statSync, writeSync } from "node:fs";
import type { BigIntStats } from "node:fs";
import { open, readlink, rename, stat, unlink } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

const DEFAULT_INTERVAL_MS = 2000;
const NEW_FILE_MODE = 0o600;
const PERMISSION_BITS = 0o7777;
const OTHERS_MAY_READ = 0o004;
const OTHERS_MAY_WRITE = 0o002;
/** A chain of symbolic links longer than this is a circle, as the system has it. */
const MAX_LINKS = 40;
/** How long a pipe may wait for a writer, and a pipe or a terminal for the next bytes, in milliseconds. */
const PATIENCE = { writerMs: 1000, silenceMs: 60_000 };
const POLL_MS = 25;

/** Why a file could not be used. */
export interface FileFault {
  readonly fault: string;
  /** Whether the file could not be read: it may be there to be read later, with no change to see. */
  readonly isUnread: boolean;
}

/**
 * Small files, and who wants to know when one of them becomes another: by a write, a rename over it, or a symbolic link
 * on its way that points elsewhere. Watching starts in the constructor, so that a change during the first read is seen.
 * It never keeps the process alive.
 */
export class WatchedFile {
  readonly #paths: readonly string[];
  readonly #onChange: () => void;
  readonly #timer: NodeJS.Timeout;
  /** `null` where they are to be read again, whatever they look like. */
  #looks: string | null;
  /** The faults of files that could not be read, as they were told; `null` where none are. */
  #told: string | null = null;
  #isLooking = false;
  #isClosed = false;

  /** `onChange` is called at most once an interval, however many files changed. A missing file may appear later. */
  constructor(paths: readonly string[], onChange: () => void, intervalMs = DEFAULT_INTERVAL_MS) {
    this.#paths = paths;
    this.#onChange = onChange;
    this.#looks = paths.map((path) => lookOf(tryStat(path))).join("\n");
    this.#timer = setInterval(() => void this.#compare(), intervalMs);
    this.#timer.unref();
  }

  /**
   * The text of a file; rejects when it can't be read, has more than `maxBytes`, or is not UTF-8. It may be a pipe, of
   * a shell or by name, or a terminal: then it is what comes until its end.
   */
  static async read(path: string, maxBytes: number, patience = PATIENCE): Promise<string> {
    // Only so does a pipe without a writer take no thread of the pool, for ever.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const isPipe = (await file.stat()).isFIFO();
      const buffer = Buffer.alloc(maxBytes + 1);
      let length = 0;
      for (;;) {
        const writerMs = isPipe && length === 0 ? patience.writerMs : 0;
        const bytesRead = await readNext(file, buffer.subarray(length), { ...patience, writerMs });
        if (bytesRead === null) throw new Error(`${path} gave nothing for ${patience.silenceMs / 1000} s`);
        length += bytesRead;
        if (length > maxBytes) throw new Error(`${path} has more than ${maxBytes} bytes`);
        if (bytesRead === 0) break;
      }
      const bytes = buffer.subarray(0, length);
      if (!isUtf8(bytes)) throw new Error(`${path} is not UTF-8`);
      return bytes.toString();
    } finally {
      await file.close();
    }
  }

  /** Whether every user of the machine may read a file; `false` when it can't be told. */
  static isReadableByAll(path: string): Promise<boolean> {
    return hasPermission(path, OTHERS_MAY_READ);
  }

  /** Whether every user of the machine may write a file; `false` when it can't be told. */
  static isWritableByAll(path: string): Promise<boolean> {
    return hasPermission(path, OTHERS_MAY_WRITE);
  }

  /** Has `onChange` called once more, though nothing may change: for whoever could not read a file this time. */
  lookAgain(): void {
    this.#looks = null;
  }

  /**
   * Takes what was wrong with the files when they were read, and returns whether that is to be told: where one can't be
   * read, `onChange` is called until it can, and the same faults are told once, not with each try.
   */
  noteFaults(faults: readonly FileFault[]): boolean {
    const isUnread = faults.some((one) => one.isUnread);
    if (isUnread) this.lookAgain();
    const before = this.#told;
    this.#told = isUnread ? faults.map(({ fault }) => fault).join("\n") : null;
    return this.#told === null || this.#told !== before;
  }

  /** The next faults are told whatever was told before: somebody asks for them. */
  tellAnew(): void {
    this.#told = null;
  }

  /** Ends watching; `onChange` is not called after it. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  async #compare(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const found = await Promise.all(this.#paths.map(lookAt));
    this.#isLooking = false;
    const looks = found.map(lookOf).join("\n");
    if (looks === this.#looks || this.#isClosed) return;
    this.#looks = looks;
    this.#onChange();
  }
}

/**
 * Puts `text` in a file's place, whole and durable or not at all. A new file can be read by its owner alone; another
 * keeps its permissions, and its place where `path` is a symbolic link.
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const target = await targetOf(path);
  const found = await stat(target).catch(() => null); // a new file; another fault is the open's
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString("hex")}`);
  const file = await open(temporary, "wx", NEW_FILE_MODE);
  try {
    if (found !== null) {
      // Only root may give a file away; for others the owner is themselves already, or stays as it can.
      await file.chown(found.uid, found.gid).catch(() => undefined);
      await file.chmod(found.mode & PERMISSION_BITS);
    }
    await file.writeFile(text);
    await file.sync();
    await file.close();
    await rename(temporary, target);
  } catch (error) {
    await file.close();
    await unlink(temporary).catch(() => undefined); // what failed is told by what is thrown
    throw error;
  }
  await syncDirectory(dirname(target));
}

/** Where the symbolic links at `path` end. Unlike `realpath`, also where there is no file yet. */
export async function targetOf(path: string): Promise<string> {
  let target = resolve(path);
  for (let links = 0; links < MAX_LINKS; links++) {
    const next = await readlink(target).catch(() => null); // no link: it is the file itself, or there is none
    if (next === null) return target;
    target = resolve(dirname(target), next);
  }
  throw new Error(`${path} is a circle of symbolic links`);
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** The next bytes of a file, 0 at its end; `null` where none come for too long. */
async function readNext(
  file: FileHandle,
  free: Buffer,
  { writerMs, silenceMs }: typeof PATIENCE,
): Promise<number | null> {
  const startedMs = performance.now();
  for (let hasWriter = false; ;) {
    const bytesRead = await readNow(file, free);
    const waitedMs = performance.now() - startedMs;
    hasWriter ||= bytesRead === null;
    const isEnough = bytesRead === null ? waitedMs >= silenceMs : bytesRead > 0 || hasWriter || waitedMs >= writerMs;
    if (isEnough) return bytesRead;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** `null` where a pipe or a terminal has nothing yet; a pipe that nobody has opened to write gives 0, as at its end. */
async function readNow(file: FileHandle, free: Buffer): Promise<number | null> {
  try {
    return (await file.read(free, 0, free.length, null)).bytesRead;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EAGAIN") return null;
    throw error;
  }
}

async function hasPermission(path: string, bits: number): Promise<boolean> {
  const found = await stat(path).catch(() => null); // whoever reads it learns why it can't be
  return found !== null && (found.mode & bits) !== 0;
}

async function lookAt(path: string): Promise<BigIntStats | null> {
  return stat(path, { bigint: true }).catch(() => null); // not there, or not to be seen: it may be later
}

function tryStat(path: string): BigIntStats | null {
  try {
    return statSync(path, { bigint: true });
  } catch {
    return null; // not there, or not to be seen: it may be later
  }
}

/** What differs when a file has another content or is another file. */
function lookOf(found: BigIntStats | null): string {
  if (found === null) return "none";
  const { dev, ino, size, mtimeNs, ctimeNs } = found;
  // Each write changes the times of a pipe or a terminal, and each reader of one finds other bytes.
  if (found.isFIFO() || found.isCharacterDevice()) return `${dev} ${ino}`;
  return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
}

/** Whether the system could not read a file: it may be able to later, and the file looks the same then. */
export function isReadFailure(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}

/** Whether an open descriptor is one of a directory. */
export function isOpenDirectory(descriptor: number): boolean {
  return fstatSync(descriptor).isDirectory();
}

/** Whether an open descriptor is one of a plain file. */
export function isOpenFile(descriptor: number): boolean {
  return fstatSync(descriptor).isFile();
}

/**
 * Writes all of `bytes` to an open file; throws when they can't be. A disk that gets full takes a part of a write, and
 * says so only at the next one.
 */
export function writeWhole(descriptor: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) at += writeSync(descriptor, bytes, at);
}
