import { sep } from "node:path";
import { DirectoryError } from "../directory/lock.js";
import { errorCode, isPassing, isSystemError, noFile, type SystemFiles } from "../disk/files.js";
import type { Layout } from "../format/layout.js";

/** A file or directory that is to be copied, and that the disk does not give. */
export class UnreadableError extends DirectoryError {
  readonly path: string;
  readonly problem: string;

  constructor(path: string, cause: unknown) {
    const problem = `it can't be read: ${errorCode(cause)}`;
    super(`${path}: ${problem}`, { cause });
    this.path = path;
    this.problem = problem;
  }
}

/** Reads something of the directory; throws an {@link UnreadableError} where its disk or its rights are in the way. */
export async function readingFrom<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    // With too few open files a later try succeeds: that says nothing about this one.
    if (error instanceof UnreadableError || !isSystemError(error) || isPassing(error)) throw error;
    throw new UnreadableError(path, error);
  }
}

/**
 * Throws an {@link UnreadableError} where a link is in the directory's place: whoever may write there could have root
 * copy what only root may read.
 */
export async function assertNoLink(files: SystemFiles, path: string): Promise<void> {
  const status = await readingFrom(path, () => files.linkStatus(path));
  if (status?.kind === "link") throw new UnreadableError(path, noFile(path, "link"));
}

/** Whether this is the trouble of one stream, or of what repairs have set aside, and a backup goes on without it. */
export function isUnreadable(error: unknown, { streams, damaged }: Layout): error is UnreadableError {
  if (!(error instanceof UnreadableError)) return false;
  const { path } = error;
  return path.startsWith(streams + sep) || path === damaged || path.startsWith(damaged + sep);
}
