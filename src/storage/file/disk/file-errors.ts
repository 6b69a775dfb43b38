import { constants as system } from "node:os";
import { getSystemErrorMap } from "node:util";

/** The names of the system's error numbers. */
const ERROR_NAMES = new Map(Object.entries(system.errno).map(([name, number]) => [number, name]));
/** The error numbers that libuv names in `error.code`; all others are "Unknown system error -122" or the like. */
const CODED_ERRORS = getSystemErrorMap();

/** The system's code of a file error (`ENOENT`, `EDQUOT`, ...), also where libuv has none; `""` for anything else. */
export function errorCode(error: unknown): string {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return "";
  const errno = errorNumber(error);
  if (errno === null || CODED_ERRORS.has(errno)) return error.code;
  return ERROR_NAMES.get(-errno) ?? `errno ${-errno}`;
}

/** Whether the system refused a call, for whatever reason. */
export function isSystemError(error: unknown): boolean {
  return error instanceof Error && errorNumber(error) !== null;
}

/** The file of a refused call, of a rename the place that was to be taken; `null` where the system gives none. */
export function errorPath(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  if ("dest" in error && typeof error.dest === "string") return error.dest;
  return "path" in error && typeof error.path === "string" ? error.path : null;
}

/** The number of a system error as libuv gives it, negative; `null` for anything else. */
function errorNumber(error: Error): number | null {
  return "errno" in error && typeof error.errno === "number" ? error.errno : null;
}

/** What the system would say of reading something that is no file. */
export function noFile(path: string, kind: "directory" | "link" | "other"): Error {
  const code = { directory: "EISDIR", link: "ELOOP", other: "ESPIPE" } as const;
  const errno = -system.errno[code[kind]];
  return Object.assign(new Error(`${code[kind]}: no file, open '${path}'`), { code: code[kind], errno, path });
}

const FULL_CODES = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** Whether an error says that the disk has no room: writes may go on once there is some. */
export function isDiskFull(error: unknown): boolean {
  return FULL_CODES.has(errorCode(error));
}

const BUSY_CODES = new Set(["EMFILE", "ENFILE", "ENOMEM", "EAGAIN"]);

/** Whether the process or the machine has too much open: the same call may succeed a little later. */
export function isBusy(error: unknown): boolean {
  return BUSY_CODES.has(errorCode(error));
}

/** Whether an error passes by itself or with somebody's help, and is no fault of the disk's. */
export function isPassing(error: unknown): boolean {
  return isDiskFull(error) || isBusy(error);
}

/** How soon to try again what a passing error has stopped, in milliseconds: a full disk needs somebody's help. */
export function retryMsAfter(error: unknown): number {
  return isBusy(error) ? 100 : 1000;
}

const PATH_CODES = new Set(["EISDIR", "ENOTDIR", "ENOTEMPTY", "ELOOP", "EACCES", "EPERM", "ENAMETOOLONG"]);

/** Whether something else is at a path than the file that should be there, or the file may not be used. */
export function isPathFault(error: unknown): boolean {
  return PATH_CODES.has(errorCode(error));
}
