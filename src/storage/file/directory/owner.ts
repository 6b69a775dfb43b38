import { ownerOf } from "../disk/files.js";
import type { Layout } from "../format/layout.js";
import { DirectoryError } from "./lock.js";

/**
 * Makes sure that a directory with a marker is of the user of this process. What another user writes in it, root too,
 * its server could not write to. Throws {@link DirectoryError}.
 */
export async function assertOwner({ root, marker }: Layout): Promise<void> {
  const owner = await ownerOf(marker);
  const user = process.geteuid?.();
  if (user !== undefined && owner !== user)
    throw new DirectoryError(`${root} is of the user ${owner}, and this is the user ${user}: run it as its owner`);
}
