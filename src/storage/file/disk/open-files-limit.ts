import { readProc, type Files } from "./files.js";

/** Why nothing begins where the limit is too low, in words. */
export const TOO_FEW_FILES =
  "too few files can be opened here (EMFILE): raise the limit, for instance with ulimit -n 1024";

/** How many files the process may have open; `Infinity` where the system does not tell, or sets no limit. */
export async function openFilesLimit(files: Files): Promise<number> {
  const limits = await readProc(files, "/proc/self/limits");
  return Number(/^Max open files +(\d+)/m.exec(limits ?? "")?.[1] ?? Infinity);
}

/** How many more files the process may open now; `Infinity` where the system does not tell, or sets no limit. */
export async function freeDescriptors(files: Files): Promise<number> {
  const limit = await openFilesLimit(files);
  if (limit === Infinity) return Infinity;
  const open = await files.list("/proc/self/fd");
  return Math.max(0, limit - open.length);
}
