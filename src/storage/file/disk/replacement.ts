import { replacementPath } from "../format/layout.js";
import { isDiskFull, type Files } from "./files.js";

/** Replaces the file at `path`: a crash leaves the old or the new one whole; the caller syncs the directory. */
export async function replaceFile(files: Files, path: string, bytes: Buffer): Promise<void> {
  await writeReplacement(files, path, bytes);
  await putReplacement(files, path);
}

/** The first half of {@link replaceFile}: `bytes` are permanent beside the file at `path`, which is as it was. */
export async function writeReplacement(files: Files, path: string, bytes: Buffer): Promise<void> {
  const file = await files.open(replacementPath(path), "replacement");
  try {
    await file.write(bytes, 0);
  } catch (error) {
    // Half of it would only take room.
    if (isDiskFull(error)) await files.unlink(replacementPath(path));
    throw error;
  } finally {
    await file.close();
  }
}

/** The second half of {@link replaceFile}: what was written beside the file at `path` takes its place. */
export function putReplacement(files: Files, path: string): Promise<void> {
  return files.rename(replacementPath(path), path);
}
