// What is done with files as a whole, by the calls of their door.

import type { Allocate } from "../../storage.js";
import { errorCode, isDiskFull } from "./file-errors.js";
import type { Files, OpenFile } from "./file-system.js";

/** Node takes the length of a read for a number of 32 bits. */
const MAX_READ_BYTES = 1024 ** 3;

/** Removes a file; fine when it is not there. */
export async function removeFile(files: Files, path: string): Promise<void> {
  try {
    await files.unlink(path);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
}

/** How many bytes a file has, which must be there. */
export async function sizeOf(files: Files, path: string): Promise<number> {
  const file = await files.open(path, "read");
  try {
    return await file.size();
  } finally {
    await file.close();
  }
}

/** Reads a whole file; `null` when there is none. */
export async function readWhole(files: Files, path: string, mode: "whole" | "plain" = "whole"): Promise<Buffer | null> {
  let file: OpenFile;
  try {
    file = await files.open(path, mode);
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
    const count = await file.read(target, filled, Math.min(length - filled, MAX_READ_BYTES), position + filled);
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
