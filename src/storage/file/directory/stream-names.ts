import { join } from "node:path";
import type { Files } from "../disk/files.js";
import { nameOfEntry } from "../format/layout.js";
import { readSidecarIn } from "./catalog.js";
import type { MaybePromise } from "../../storage.js";
import type { DataDirectory } from "./directory.js";

/**
 * The names of all streams that have a directory, ordered within each shard, of which `atOnce` are read at a time. Some
 * may be of no stream any more. It ends early when `take` returns false.
 */
export async function namesOnDisk(
  { files, layout }: Pick<DataDirectory, "files" | "layout">,
  atOnce: number,
  take: (names: readonly string[]) => MaybePromise<boolean>,
): Promise<void> {
  const shards = (await files.list(layout.streams)).values();
  let isWanted = true;
  // They share one iterator: each takes the next shard that nobody has taken.
  const worker = async (): Promise<void> => {
    for (const shard of shards) {
      const names = await namesOfShard(files, join(layout.streams, shard));
      isWanted = isWanted && (await take(names));
      if (!isWanted) return;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function namesOfShard(files: Files, shard: string): Promise<string[]> {
  const names: string[] = [];
  for (const entry of await files.list(shard)) {
    const name = nameOfEntry(entry) ?? (await cutName(files, join(shard, entry)));
    if (name !== null) names.push(name);
  }
  return names.sort();
}

/** A long name is whole only in the sidecar. */
async function cutName(files: Files, directory: string): Promise<string | null> {
  const read = await readSidecarIn(files, directory);
  return read?.kind === "sound" ? read.sidecar.name : null;
}
