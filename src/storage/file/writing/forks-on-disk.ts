import { join } from "node:path";
import { StorageBusyError } from "../../storage.js";
import { errorCode, isBusy, isPathFault, isSystemError, readWhole } from "../disk/files.js";
import { sidecarPath } from "../format/layout.js";
import { forkOf } from "../format/sidecar.js";
import type { StreamFiles } from "../segments/stream-files.js";
import type { Trash } from "../segments/trash.js";

/** Where they are looked for. */
export interface ForksPlace extends Pick<StreamFiles, "files" | "layout"> {
  readonly trash: Pick<Trash, "isVacating">;
}

/**
 * The names of the streams whose sidecars, damaged or not, say that they were forked from a stream of the name
 * `source`. Reads all sidecars, as long as that takes; leaves out what can't be read, and what is deleted. Throws
 * {@link StorageBusyError}.
 */
export async function forksOnDisk({ files, layout, trash }: ForksPlace, source: string): Promise<string[]> {
  const names: string[] = [];
  for (const shard of await listed(files.list(layout.streams))) {
    const directory = join(layout.streams, shard);
    for (const entry of await listed(files.list(directory))) {
      const path = sidecarPath(join(directory, entry));
      const bytes = await readWhole(files, path).catch(unlessUnreadable);
      const name = bytes === null ? null : forkOf(bytes, source);
      if (name !== null && !trash.isVacating(name)) names.push(name);
    }
  }
  return names;
}

/** What is no directory holds no stream; what can't be listed may hold one. */
function listed(listing: Promise<string[]>): Promise<string[]> {
  return listing.catch((error: unknown) => {
    if (isPathFault(error) || errorCode(error) === "ENOENT") return [];
    throw asBusy(error);
  });
}

function unlessUnreadable(error: unknown): null {
  if (isBusy(error) || !isSystemError(error)) throw asBusy(error);
  return null;
}

function asBusy(error: unknown): unknown {
  if (!isSystemError(error)) return error;
  return new StorageBusyError("the streams' files can't be looked through now", { cause: error });
}
