import { explainUnusable, type DataDirectory } from "../directory/directory.js";
import { findMarker, usableId } from "../directory/marker.js";
import { errorCode, isPathFault, readWhole, systemFiles, type Files } from "../disk/files.js";
import { Layout } from "../format/layout.js";
import { assertUnlocked, DirectoryError } from "../directory/lock.js";

/** A data directory that nobody had open when it was looked at. */
export interface OfflineDirectory extends DataDirectory {
  /** Throws a {@link DirectoryError} where a server, a repair or a backup has opened it since. */
  assertUntouched(): Promise<void>;
}

/**
 * Finds a data directory for a command that works beside no server; changes nothing. With `force` the lock of a
 * process that can't be seen from here does not count. Throws {@link DirectoryError}.
 */
export async function openOffline(root: string, force: boolean): Promise<OfflineDirectory> {
  const files = systemFiles(true);
  const layout = new Layout(root);
  try {
    const marker = await findMarker(files, layout);
    if (marker === null)
      throw new DirectoryError(`${root} is not a data directory of streamdir: ${layout.marker} is missing`);
    // Read before the lock is looked at: whoever takes that later has not changed these yet.
    const before = await tracesIn(files, layout);
    await assertUnlocked(files, layout.lock, force);
    const assertUntouched = async (): Promise<void> => {
      if ((await tracesIn(files, layout)) === before) return;
      throw new DirectoryError(`${root} was opened meanwhile: run it again`);
    };
    return { files, layout, directoryId: usableId(layout, marker), assertUntouched };
  } catch (error) {
    throw explainUnusable(root, error);
  }
}

/** What changes when somebody opens a directory. */
async function tracesIn(files: Files, { lock, marker, backup }: Layout): Promise<string> {
  const traces: (string | null)[] = [];
  for (const path of [lock, marker, backup]) traces.push(await traceAt(files, path));
  return JSON.stringify(traces);
}

async function traceAt(files: Files, path: string): Promise<string | null> {
  try {
    return (await readWhole(files, path))?.toString("latin1") ?? null;
  } catch (error) {
    if (!isPathFault(error)) throw error;
    return errorCode(error);
  }
}
