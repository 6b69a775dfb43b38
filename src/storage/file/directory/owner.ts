import type { Log } from "../../../ops/log.js";
import { ownerOf } from "../disk/files.js";
import type { Layout } from "../format/layout.js";
import { DirectoryError } from "./lock.js";

/**
 * Makes sure that a directory with a marker is of the user of this process. What another user writes in it, root too,
 * its server could not write to. Throws {@link DirectoryError}.
 */
export async function assertOwner(layout: Layout): Promise<void> {
  const owner = await otherOwnerOf(layout);
  if (owner !== null)
    throw new DirectoryError(
      `${layout.root} is of the user ${owner}, and this is the user ${process.geteuid?.()}: run it as its owner`,
    );
}

/** The user that a directory with a marker is of; `null` where that is the user of this process, or none is told. */
async function otherOwnerOf({ marker }: Layout): Promise<number | null> {
  const owner = await ownerOf(marker);
  const user = process.geteuid?.();
  return user === undefined || owner === user ? null : owner;
}

/** Warns of a directory in which this process makes files that its user's server can't open: root may make them. */
export async function warnOfOtherOwner(layout: Layout, log: Log): Promise<void> {
  // Who has just opened it has found what is wrong with it.
  const owner = await otherOwnerOf(layout).catch(() => null);
  if (owner !== null)
    log.warn("the directory is another user's, whose own server can't open what this one makes in it", {
      dir: layout.root,
      owner,
    });
}
