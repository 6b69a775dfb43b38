import { explainUnusable, type DataDirectory } from "../directory/directory.js";
import { findMarker, usableId } from "../directory/marker.js";
import { systemFiles } from "../disk/files.js";
import { Layout } from "../format/layout.js";
import { DirectoryError, watchUnlocked } from "../directory/lock.js";

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
    const assertUntouched = await watchUnlocked(files, layout, force);
    return { files, layout, directoryId: usableId(layout, marker), assertUntouched };
  } catch (error) {
    throw explainUnusable(root, error);
  }
}
