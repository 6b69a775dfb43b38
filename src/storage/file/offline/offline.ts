import { explainUnusable, type DataDirectory } from "../directory/directory.js";
import { findMarker, usableId } from "../directory/marker.js";
import { systemFiles } from "../disk/files.js";
import { Layout } from "../format/layout.js";
import { assertUnlocked, DirectoryError } from "../directory/lock.js";

/**
 * Finds a data directory for a command that works beside no server; changes nothing. With `force` the lock of a
 * process that can't be seen from here does not count. Throws {@link DirectoryError}.
 */
export async function openOffline(root: string, force: boolean): Promise<DataDirectory> {
  const files = systemFiles(true);
  const layout = new Layout(root);
  try {
    const marker = await findMarker(files, layout);
    if (marker === null)
      throw new DirectoryError(`${root} is not a data directory of streamdir: ${layout.marker} is missing`);
    await assertUnlocked(files, layout.lock, force);
    return { files, layout, directoryId: usableId(layout, marker) };
  } catch (error) {
    throw explainUnusable(root, error);
  }
}
