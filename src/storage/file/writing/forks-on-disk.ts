import { join } from "node:path";
import { StorageBusyError } from "../../storage.js";
import { errorCode, isBusy, isSystemError, readWhole } from "../disk/files.js";
import { isShardName, sidecarPath } from "../format/layout.js";
import { forkOf } from "../format/sidecar.js";
import type { StreamFiles } from "../segments/stream-files.js";
import type { Trash } from "../segments/trash.js";

/** Where they are looked for. */
export interface ForksPlace extends Pick<StreamFiles, "files" | "layout"> {
  readonly trash: Pick<Trash, "isVacating">;
}

/** What was found of forks. */
export interface ForksOnDisk {
  readonly names: readonly string[];
  /** Whether there may be others: a sidecar can't be read. */
  readonly mayHaveMore: boolean;
}

/**
 * The names of the streams whose sidecars, damaged or not, or notices say that they were forked from a stream of the
 * name `source`, but for those that are deleted. Reads all sidecars, as long as that takes. Throws
 * {@link StorageBusyError}.
 */
export async function forksOnDisk({ files, layout, trash }: ForksPlace, source: string): Promise<ForksOnDisk> {
  const own = layout.streamDirectory(source);
  const names: string[] = [];
  let mayHaveMore = false;
  for (const shard of (await listed(files.list(layout.streams))).filter(isShardName)) {
    const entries = await listed(files.list(join(layout.streams, shard)));
    for (const directory of entries.map((entry) => join(layout.streams, shard, entry))) {
      if (directory === own) continue;
      const bytes = await readWhole(files, sidecarPath(directory)).catch(ifUnreadable);
      if (bytes === "unreadable") mayHaveMore = true;
      const name = bytes === null || bytes === "unreadable" ? null : forkOf(bytes, source);
      if (name !== null && !trash.isVacating(name)) names.push(name);
    }
  }
  return { names, mayHaveMore };
}

/** What is no directory holds no stream; what can't be listed may hold one. */
function listed(listing: Promise<string[]>): Promise<string[]> {
  return listing.catch((error: unknown) => {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(error))) return [];
    throw asBusy(error);
  });
}

function ifUnreadable(error: unknown): "unreadable" {
  if (isBusy(error) || !isSystemError(error)) throw asBusy(error);
  return "unreadable";
}

function asBusy(error: unknown): unknown {
  if (!isSystemError(error)) return error;
  return new StorageBusyError("the streams' files can't be looked through now", { cause: error });
}
