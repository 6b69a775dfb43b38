import { randomBytes } from "node:crypto";
import { dirname, join, resolve, sep } from "node:path";
import { reasonOf } from "../disk/error-reasons.js";
import { errorCode, errorPath, isDiskFull, readWhole, removeFile, SyncError, type Files } from "../disk/files.js";
import { isOwnName, journalSequenceOf, type Layout } from "../format/layout.js";
import { DirectoryError } from "./lock.js";
import { findMarker, replaceMarker, usableId, type Marker } from "./marker.js";
import { NEVER_RESTORED, restoredAgain, type Restores } from "../memory/restores.js";
import { decodeFrame, DIRECTORY_ID_BYTES, SECTOR_BYTES } from "../format/record.js";
import { FORMAT } from "../format/sidecar.js";

/** A data directory, by where it is and by its id. */
export interface DataDirectory {
  readonly files: Files;
  readonly layout: Layout;
  readonly directoryId: Buffer;
}

/** A data directory that is about to be opened. */
export interface PreparedDirectory {
  readonly id: Buffer;
  /** Whether it has no marker yet, which is written last. */
  readonly isNew: boolean;
  readonly restores: Restores;
}

/**
 * Makes what is missing in a data directory, at `nowMs`, and reads what its marker says. A new one may have files of
 * the names `besides` in it. Throws {@link DirectoryError}.
 */
export async function prepareDirectory(
  files: Files,
  layout: Layout,
  nowMs: number,
  besides: readonly string[] = [],
): Promise<PreparedDirectory> {
  const marker = await findMarker(files, layout);
  if (marker !== null) {
    const id = usableId(layout, marker);
    const restores = await noteRestore(files, layout, marker, nowMs);
    // The process that wrote the marker may have been killed before its entry was permanent.
    // Not every copy has empty directories, and the trash is empty after a clean end.
    await files.makeDirectory(layout.trash);
    await syncEntries(files, layout);
    await makeShards(files, layout);
    return { id, isNew: false, restores };
  }
  await assertEmpty(files, layout, besides);
  for (const directory of [layout.journal, layout.streams, layout.trash]) await files.makeDirectory(directory);
  // Before the marker can be there, all that it vouches for is.
  await makeShards(files, layout);
  await files.syncDirectory(layout.root);
  return { id: randomBytes(DIRECTORY_ID_BYTES), isNew: true, restores: NEVER_RESTORED };
}

/** From now on a backup is no copy of another directory, which a backup may change. */
async function noteRestore(files: Files, layout: Layout, marker: Marker, nowMs: number): Promise<Restores> {
  if ((await readWhole(files, layout.backup)) === null) return marker.restores;
  const restores = restoredAgain(marker.restores, nowMs);
  await replaceMarker(files, layout, { ...marker, restores });
  await removeFile(files, layout.backup);
  return restores;
}

/** Makes the directories that hold the streams' directories where they are missing: not every copy has empty ones. */
export async function makeShards(files: Files, layout: Layout): Promise<void> {
  const there = new Set(await files.list(layout.streams));
  const shards = Array.from({ length: 256 }, (_, shard) => shard.toString(16).padStart(2, "0"));
  const missing = shards.filter((shard) => !there.has(shard));
  // All at a time: one after the other they would be a tenth of a start. None is still being made when this fails.
  const made = await Promise.allSettled(missing.map((shard) => files.makeDirectory(join(layout.streams, shard))));
  for (const each of made) if (each.status === "rejected") throw each.reason;
  // Also when none was: a start that was killed may have made them.
  await files.syncDirectory(layout.streams);
}

/** Marks the directory as a data directory: from now on it must have a journal. */
export async function writeMarker(
  files: Files,
  layout: Layout,
  id: Buffer,
  restores: Restores = NEVER_RESTORED,
): Promise<void> {
  await replaceMarker(files, layout, { format: FORMAT, directoryId: id, restores, upgradingTo: null });
  await syncEntries(files, layout);
}

/** The directory and those above it may be new: their entries must not be lost with all that is in them. */
async function syncEntries(files: Files, { root }: Layout): Promise<void> {
  await files.syncDirectory(root);
  for (let path = resolve(root); path !== dirname(path); path = dirname(path)) {
    try {
      await files.syncDirectory(dirname(path));
    } catch (error) {
      // What can't be opened or synced was not made by this process.
      const reason = error instanceof SyncError ? error.cause : error;
      if (!["EACCES", "EPERM", "EROFS", "EINVAL"].includes(errorCode(reason))) throw error;
    }
  }
}

/** Says in one line why the system won't let us use a directory, or a file in it. */
export function explainUnusable(root: string, error: unknown): unknown {
  if (error instanceof SyncError) return new DirectoryError(`the directory ${root} can't be used: ${error.message}`);
  // What has a code is the system's word; anything else is a fault of ours, or says what is wrong by itself.
  if (errorCode(error) === "") return error;
  const path = errorPath(error);
  // A full disk, and a file in the place of the directory, are nothing about the file that met them.
  const isGeneral = isDiskFull(error) || errorCode(error) === "ENOTDIR";
  const place = path?.startsWith(`${root}${sep}`) !== true || isGeneral ? "" : `${path}: `;
  return new DirectoryError(`the directory ${root} can't be used: ${place}${reasonOf(error)}`);
}

/** Without a marker there is nothing to lose here, or the marker itself was lost, or all of it is somebody else's. */
async function assertEmpty(files: Files, layout: Layout, besides: readonly string[]): Promise<void> {
  for (const shard of await files.list(layout.streams)) {
    if ((await files.list(join(layout.streams, shard))).length > 0) {
      throw new DirectoryError(`${layout.marker} is missing, but the directory has streams`);
    }
  }
  // A first start that was cut short leaves a journal without streams: no more than a frame without records.
  const names = (await files.list(layout.journal)).filter((name) => journalSequenceOf(name) !== null);
  for (const name of names) {
    if (hasRecords((await readWhole(files, join(layout.journal, name))) ?? Buffer.alloc(0))) {
      throw new DirectoryError(`${layout.marker} is missing, but the journal has records`);
    }
  }
  const isOurs = (name: string): boolean => isOwnName(name) || isOfSystem(name) || besides.includes(name);
  const foreign = (await files.list(layout.root)).find((name) => !isOurs(name));
  if (foreign !== undefined) {
    throw new DirectoryError(
      `${layout.root} is no data directory, as it has ${foreign} in it; name a directory that is new or empty`,
    );
  }
  for (const name of names) await files.unlink(join(layout.journal, name));
}

/** Whether a name may be in a directory that nobody has put anything into. */
export function isOfSystem(fileName: string): boolean {
  return fileName.startsWith(".") || fileName === "lost+found";
}

function hasRecords(journalFile: Buffer): boolean {
  for (let offset = 0; offset < journalFile.length; offset += SECTOR_BYTES) {
    if ((decodeFrame(journalFile, offset)?.recordCount ?? 0) > 0) return true;
  }
  return false;
}
