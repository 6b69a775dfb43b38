import type { FileStatus, SystemFiles } from "../disk/files.js";

/** The status of a file of the backup; what else is in its place is removed: a link may lead out of the backup. */
export async function ownFile(files: SystemFiles, path: string): Promise<FileStatus | null> {
  const status = await files.linkStatus(path);
  if (status === null || status.kind === "file") return status;
  await files.removeTree(path);
  return null;
}

/** The same for a directory, whose files are about to be copied or removed. */
export async function ownDirectory(files: SystemFiles, path: string): Promise<FileStatus | null> {
  const status = await files.linkStatus(path);
  if (status === null || status.kind === "directory") return status;
  await files.removeTree(path);
  return null;
}
