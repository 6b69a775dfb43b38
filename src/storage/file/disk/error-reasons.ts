import { errorCode } from "./file-errors.js";
import { TOO_FEW_FILES } from "./open-files-limit.js";

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOENT: "it can't be made there, or a symbolic link leads to what is not there",
  EISDIR: "it is a directory",
  ENOTDIR: "it is not a directory",
  EEXIST: "it is not a directory",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EFBIG: "files may not be as large here (ulimit -f)",
  ENAMETOOLONG: "the path is too long",
  EXDEV: "it lies on more than one file system",
  ELOOP: "a symbolic link is in its place, or its links go in a circle",
  EMFILE: TOO_FEW_FILES,
  ERR_ACCESS_DENIED: "Node's permission model allows no syncs: start without --permission",
};

/** Why the system refused a call, in words where there are any. */
export function reasonOf(error: unknown): string {
  const code = errorCode(error);
  return REASONS[code] ?? code;
}
