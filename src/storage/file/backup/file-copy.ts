import {
  errorCode,
  noFile,
  readFully,
  removeFile,
  type FileStatus,
  type OpenFile,
  type SystemFiles,
} from "../disk/files.js";
import { crc32 } from "../format/crc32.js";
import { replacementPath } from "../format/layout.js";
import { crcOf } from "../segments/segment-reader.js";
import type { Tally } from "./tally.js";
import { ownFile } from "./own-places.js";
import { readingFrom, UnreadableError } from "./unreadable.js";

const STEP_BYTES = 1024 * 1024;
/** Why a file system gives a file no second name: another one, a limit, or it has no such thing. */
const NO_LINKS = new Set(["EXDEV", "EPERM", "EACCES", "EMLINK", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

/** So many bytes from the start of a file, and their checksum. */
export interface Extent {
  readonly length: number;
  readonly crc: number;
}

const NOTHING: Extent = { length: 0, crc: 0 };

/** A file that only ever grows, and how much of it is wanted. */
export interface GrowingFile {
  readonly from: string;
  readonly to: string;
  readonly wanted: Extent;
  /** What an earlier backup vouches for at `to`; `null` where none does. */
  readonly known: Extent | null;
  /** Whether that holds only where the bytes say so, too. */
  readonly isDoubted: boolean;
  /** Whether nobody writes to it any more: a second name of it will have the same bytes for ever. */
  readonly isSealed: boolean;
}

/** How a copy went; `damaged`: what was copied is not what was written. */
export type CopyOutcome = "kept" | "changed" | "missing" | "damaged";

/**
 * Copies the wanted bytes of a file, or only what is new of them, and makes them permanent. Throws an UnreadableError
 * where the file can't be read.
 */
export async function copyGrowing(files: SystemFiles, file: GrowingFile, tally: Tally): Promise<CopyOutcome> {
  const { from, to, wanted, known, isDoubted, isSealed } = file;
  const there = await ownFile(files, to);
  // It was sealed when it got its second name, and is the last one again: what ends a stream early does that.
  if (!isSealed && there !== null && there.links > 1 && (await isSame(files, from, there)))
    await copyWhole(files, from, to);
  const isKnown =
    known !== null &&
    there !== null &&
    there.size >= known.length &&
    !(isDoubted && (await crcOfCopy(files, to, known.length)) !== known.crc);
  if (isKnown && known.length === wanted.length && known.crc === wanted.crc) return kept(wanted, tally);
  const source = await readingFrom(from, () => files.linkStatus(from));
  if (source === null) return "missing";
  if (source.kind !== "file") throw new UnreadableError(from, noFile(from, source.kind));
  const isLinked = isSealed && source.inode === there?.inode && source.device === there.device;
  const crcOfSource = (): Promise<number> => readingFrom(from, () => crcAt(files, from, wanted.length));
  if (isLinked) return isDoubted && (await crcOfSource()) !== wanted.crc ? "damaged" : kept(wanted, tally);
  let isSound = true;
  let unreadable: UnreadableError | null = null;
  if (isSealed && source.size === wanted.length) {
    if (there?.size === wanted.length && (await crcOfCopy(files, to, wanted.length)) === wanted.crc)
      return kept(wanted, tally);
    // A link would replace what is there, which may be sound where this is not.
    try {
      isSound = (there === null && !isDoubted) || (await crcOfSource()) === wanted.crc;
    } catch (error) {
      // What is not there yet may be readable all the same.
      if (!(error instanceof UnreadableError)) throw error;
      unreadable = error;
    }
    if (isSound && unreadable === null && (await hasLinked(files, source, from, to))) {
      tally.linkedBytes += wanted.length;
      return "changed";
    }
  }
  const outcome =
    there === null
      ? await copyFrom(files, file, NOTHING, tally)
      : await copyRest(files, file, there, isKnown ? known : null, tally);
  if (unreadable !== null) throw unreadable;
  return isSound ? outcome : "damaged";
}

/** Copies what is new beside what is there; all of it where that is not sound. */
async function copyRest(
  files: SystemFiles,
  file: GrowingFile,
  there: FileStatus,
  known: Extent | null,
  tally: Tally,
): Promise<CopyOutcome> {
  const { to, wanted } = file;
  const length = Math.min(there.size, wanted.length);
  // Behind what is known there may be more, which may be sound where the source is not.
  const crc = known?.length === length ? known.crc : await crcOfCopy(files, to, length);
  if (crc === null || (there.links > 1 && !(await hasUnshared(files, to)))) return copyAnew(files, file, tally);
  const outcome = await copyFrom(files, file, { length, crc }, tally);
  // What is there may be what a directory had before it was put back to an earlier state, and went on differently.
  return outcome === "damaged" && length > 0 ? copyAnew(files, file, tally) : outcome;
}

/** Copies all of a file. What is there stays until a sound copy takes its place: there may never be a better one. */
async function copyAnew(files: SystemFiles, file: GrowingFile, tally: Tally): Promise<CopyOutcome> {
  const unready = replacementPath(file.to);
  await removeFile(files, unready);
  try {
    const outcome = await copyFrom(files, { ...file, to: unready }, NOTHING, tally);
    if (outcome === "changed") await files.rename(unready, file.to);
    return outcome;
  } finally {
    await removeFile(files, unready);
  }
}

async function isSame(files: SystemFiles, path: string, { device, inode }: FileStatus): Promise<boolean> {
  const status = await files.linkStatus(path);
  return status !== null && status.device === device && status.inode === inode;
}

function kept({ length }: Extent, tally: Tally): CopyOutcome {
  tally.keptBytes += length;
  return "kept";
}

/** A second name for the `source`, which was at `from`; false where it is gone, or the file system gives none. */
async function hasLinked(files: SystemFiles, source: FileStatus, from: string, to: string): Promise<boolean> {
  const unready = replacementPath(to);
  try {
    await removeFile(files, unready);
    await files.link(from, unready);
    if (!(await isSame(files, unready, source))) {
      await removeFile(files, unready);
      return false;
    }
    await files.rename(unready, to);
    return true;
  } catch (error) {
    if (errorCode(error) === "ENOENT" || NO_LINKS.has(errorCode(error))) return false;
    throw error;
  }
}

async function copyFrom(
  files: SystemFiles,
  { from, to, wanted }: GrowingFile,
  begun: Extent,
  tally: Tally,
): Promise<CopyOutcome> {
  const source = await readingFrom(from, () => opened(files, from));
  if (source === null) return "missing";
  try {
    const target = await files.open(to, "write");
    tally.keptBytes += begun.length;
    try {
      const crc = await copyRange(from, source, target, begun, wanted.length, tally);
      if (crc !== wanted.crc) return "damaged";
      if ((await target.size()) > wanted.length) await target.truncate(wanted.length);
      return "changed";
    } finally {
      await target.sync().finally(() => target.close());
    }
  } finally {
    await source.close();
  }
}

/** Copies from where `begun` ends; resolves to the checksum of all, also where the source ends too early. */
async function copyRange(
  from: string,
  source: OpenFile,
  target: OpenFile,
  begun: Extent,
  end: number,
  tally: Tally,
): Promise<number> {
  let { length: position, crc } = begun;
  const buffer = Buffer.allocUnsafe(Math.min(STEP_BYTES, Math.max(1, end - position)));
  while (position < end) {
    const length = Math.min(buffer.length, end - position);
    const count = await readingFrom(from, () => source.read(buffer, 0, length, position));
    if (count === 0) break;
    const bytes = buffer.subarray(0, count);
    await target.write(bytes, position);
    crc = crc32(bytes, crc);
    position += count;
    tally.copiedBytes += count;
  }
  return position === end ? crc : -1;
}

async function opened(files: SystemFiles, path: string): Promise<OpenFile | null> {
  try {
    return await files.open(path, "plain");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(error))) return null;
    throw error;
  }
}

async function crcAt(files: SystemFiles, path: string, length: number): Promise<number> {
  const file = await files.open(path, "plain");
  try {
    return await crcOf(file, length);
  } finally {
    await file.close();
  }
}

/** The checksum of the beginning of a copy; `null` where the backup's disk does not give it. */
function crcOfCopy(files: SystemFiles, path: string, length: number): Promise<number | null> {
  return readingFrom(path, () => crcAt(files, path, length)).catch(nothingIfUnreadable);
}

/** Whether the copy could be given bytes of its own: the backup's disk may not give those that it has. */
async function hasUnshared(files: SystemFiles, path: string): Promise<boolean> {
  return (await unshare(files, path).catch(nothingIfUnreadable)) !== null;
}

function nothingIfUnreadable(error: unknown): null {
  if (!(error instanceof UnreadableError)) throw error;
  return null;
}

/** Gives the file at `path` bytes of its own: what has other names is never written to. */
export async function unshare(files: SystemFiles, path: string): Promise<void> {
  await copyWhole(files, path, path);
}

/**
 * Copies a file whatever it holds, in place of what is at `to`; false where there is none. Throws an UnreadableError
 * where it can't be read, and leaves what is at `to`.
 */
export async function copyWhole(files: SystemFiles, from: string, to: string): Promise<boolean> {
  const source = await readingFrom(from, () => opened(files, from));
  if (source === null) return false;
  const unready = replacementPath(to);
  try {
    await removeFile(files, unready);
    const target = await files.createNew(unready);
    try {
      const buffer = Buffer.allocUnsafe(STEP_BYTES);
      for (let position = 0, count = 0; ; position += count) {
        const at = position;
        count = await readingFrom(from, () => source.read(buffer, 0, buffer.length, at));
        if (count === 0) break;
        await target.write(buffer.subarray(0, count), position);
      }
      await target.sync();
    } finally {
      await target.close();
    }
    await files.rename(unready, to);
    return true;
  } catch (error) {
    await removeFile(files, unready);
    throw error;
  } finally {
    await source.close();
  }
}

/** Bytes in the middle of a file; `null` where it does not have all of them. Throws an UnreadableError. */
export async function readRange(
  files: SystemFiles,
  path: string,
  position: number,
  length: number,
): Promise<Buffer | null> {
  const file = await readingFrom(path, () => opened(files, path));
  if (file === null) return null;
  try {
    const bytes = await readingFrom(path, () => readFully(file, position, length));
    return bytes.length === length ? bytes : null;
  } finally {
    await file.close();
  }
}
