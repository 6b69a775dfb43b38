import { basename, dirname, resolve } from "node:path";
import { errorCode, systemFiles } from "../storage/file/disk/files.js";

/** Whether there is a directory at `path`; true as well where the system does not say: opening it will show why. */
export async function isDirectory(path: string): Promise<boolean> {
  const files = systemFiles(false);
  const whole = resolve(path);
  try {
    if ((await files.list(whole)).length > 0) return true;
    return (await files.list(dirname(whole))).includes(basename(whole)) || whole === dirname(whole);
  } catch (error) {
    return errorCode(error) !== "ENOTDIR";
  }
}
