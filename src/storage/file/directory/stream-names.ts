import { join } from "node:path";
import type { Files } from "../disk/files.js";
import { nameOfEntry, type Layout } from "../format/layout.js";
import { readSidecarIn } from "./catalog.js";

/**
 * The names of all streams that have a directory, an ordered list for each shard. Some may be of no stream any more.
 * `atOnce` shards are read at a time.
 */
export async function namesOnDisk(files: Files, layout: Layout, atOnce: number): Promise<string[][]> {
  const shards = (await files.list(layout.streams)).values();
  const found: string[][] = [];
  // They share one iterator: each takes the next shard that nobody has taken.
  const worker = async (): Promise<void> => {
    for (const shard of shards) found.push(await namesOfShard(files, join(layout.streams, shard)));
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return found;
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
