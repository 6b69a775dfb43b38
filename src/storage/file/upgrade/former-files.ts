import { dirname, join } from "node:path";
import type { DataDirectory } from "../directory/directory.js";
import { removeFile, readFully, readWhole, sizeOf, type Files, type OpenFile } from "../disk/files.js";
import { formerFilesPath } from "../format/layout.js";
import type { UpgradeStep } from "./upgrade-steps.js";

/** Files, and the bytes in them. */
export interface Amount {
  readonly files: number;
  readonly bytes: number;
}

const PART_BYTES = 1024 * 1024;

/** How much a step changes, and so copies first. */
export async function amountOf(directory: DataDirectory, step: UpgradeStep): Promise<Amount> {
  let [files, bytes] = [0, 0];
  for await (const path of step.changes(directory)) {
    files += 1;
    bytes += await sizeOf(directory.files, join(directory.layout.root, path));
  }
  return { files, bytes };
}

/**
 * Copies what a step changes, and the marker, to a directory inside this one, anew: what lies there is of an upgrade
 * that was cut short before its first change, or that was taken back. Permanent when it resolves. Copies and no hard
 * links, since journal and segments are written in place.
 */
export async function keepFormerFiles(directory: DataDirectory, step: UpgradeStep): Promise<void> {
  const { files, layout } = directory;
  const place = formerFilesPath(layout, step.to);
  await files.removeTree(place);
  const made = new Set<string>();
  try {
    await makeAndNote(files, place, layout.root, made);
    for await (const path of step.changes(directory)) {
      const copy = join(place, "files", path);
      await makeAndNote(files, dirname(copy), layout.root, made);
      await copyFile(files, join(layout.root, path), copy);
    }
    const marker = (await readWhole(files, layout.marker)) ?? Buffer.alloc(0);
    await writeCopy(files, join(place, "streamdir.json"), async (copy) => copy.write(marker, 0));
    for (const path of [...made, layout.root]) await files.syncDirectory(path);
  } catch (error) {
    // Half of it would only take room, which may be what is missing.
    await files.removeTree(place);
    throw error;
  }
}

/** Makes a directory below `root`, and notes it with those above it as to be synced. */
async function makeAndNote(files: Files, path: string, root: string, made: Set<string>): Promise<void> {
  if (made.has(path)) return;
  await files.makeDirectory(path);
  for (let at = path; at !== root; at = dirname(at)) made.add(at);
}

async function copyFile(files: Files, from: string, to: string): Promise<void> {
  const source = await files.open(from, "read");
  try {
    await writeCopy(files, to, async (copy) => {
      const size = await source.size();
      for (let at = 0; at < size; at += PART_BYTES)
        await copy.write(await readFully(source, at, Math.min(PART_BYTES, size - at)), at);
    });
  } finally {
    await source.close();
  }
}

async function writeCopy(files: Files, path: string, fill: (copy: OpenFile) => Promise<void>): Promise<void> {
  await removeFile(files, path);
  const copy = await files.createNew(path);
  try {
    await fill(copy);
    await copy.sync();
  } finally {
    await copy.close();
  }
}
