import { join, resolve } from "node:path";
import type { Log } from "../../../ops/log.js";
import { explainUnusable, isOfSystem, makeShards, writeMarker } from "../directory/directory.js";
import { DirectoryError, lockDirectory } from "../directory/lock.js";
import { readWhole, removeFile, type SystemFiles } from "../disk/files.js";
import { replaceFile } from "../disk/replacement.js";
import { claimIdOf, isShardName, Layout } from "../format/layout.js";
import { findMarker } from "../directory/marker.js";
import { FORMAT } from "../format/sidecar.js";
import { Doubts, EVERYTHING } from "./doubts.js";

/** Which directory a backup is of, and for how long it may be kept from others. */
export interface DestinationOptions {
  readonly files: SystemFiles;
  readonly from: Layout;
  readonly directoryId: Buffer;
  readonly force: boolean;
  readonly log: Log;
}

/** When a backup was complete, and what it has. */
export interface BackupMark {
  readonly format: typeof FORMAT;
  readonly directory: string;
  /** It has all that was acknowledged before; `null` while it is not complete. */
  readonly asOf: string | null;
  /** What {@link Doubts} names; absent where that is nothing. */
  readonly doubted?: readonly string[];
}

/**
 * The directory that a backup goes to. From its first change on until it is complete again it has `backup.json` and no
 * `streamdir.json`: no server and no `verify` takes it for a data directory.
 */
export class Destination {
  readonly layout: Layout;
  readonly doubts: Doubts;
  readonly #options: DestinationOptions;
  readonly #unlock: () => Promise<void>;

  /** Takes the directory at `root`, and makes it. Throws {@link DirectoryError}. */
  static async open(root: string, options: DestinationOptions): Promise<Destination> {
    const { files, from, force, log } = options;
    const layout = new Layout(resolve(root));
    try {
      await assertApart(files, layout.root, from.root);
      await files.makeDirectory(layout.root);
      const unlock = await lockDirectory(files, layout.lock, { force, log });
      try {
        await assertOwn(files, layout);
        return new Destination(layout, await doubtedIn(options, layout), options, unlock);
      } catch (error) {
        await unlock();
        throw error;
      }
    } catch (error) {
      throw explainUnusable(layout.root, error);
    }
  }

  private constructor(
    layout: Layout,
    doubted: readonly string[],
    options: DestinationOptions,
    unlock: () => Promise<void>,
  ) {
    this.layout = layout;
    this.doubts = new Doubts(doubted, () => this.#mark(null));
    this.#options = options;
    this.#unlock = unlock;
  }

  /**
   * Throws {@link DirectoryError} where streams are here of which the directory has lost even the place: it has only
   * these `shards`. A server's start makes all.
   */
  async assertNoneLost(shards: readonly string[]): Promise<void> {
    const { files, from } = this.#options;
    for (const shard of (await files.list(this.layout.streams)).filter(isShardName)) {
      if (shards.includes(shard) || (await files.list(join(this.layout.streams, shard))).length === 0) continue;
      const lost = join(from.streams, shard);
      throw new DirectoryError(`${lost} is missing, and the backup ${this.layout.root} has streams of it`);
    }
  }

  /** From now on it is no complete backup. */
  async begin(): Promise<void> {
    const { files } = this.#options;
    const { layout } = this;
    this.doubts.beginPass();
    await this.#mark(null);
    await removeFile(files, layout.marker);
    for (const directory of [layout.journal, layout.streams, layout.trash]) await files.makeDirectory(directory);
    await makeShards(files, layout);
    await files.syncDirectory(layout.root);
  }

  /** All that it holds is permanent: now it is a data directory like the other. */
  async complete(asOf: Date): Promise<void> {
    const { files, from, directoryId } = this.#options;
    this.doubts.endPass();
    await this.#mark(asOf.toISOString());
    // Read last: what a server wrote after a restore that it noted meanwhile is in the copy.
    const marker = await findMarker(files, from);
    await writeMarker(files, this.layout, directoryId, marker?.restores);
  }

  /** Gives it back. */
  async close(): Promise<void> {
    await this.#unlock();
  }

  async #mark(asOf: string | null): Promise<void> {
    const { files, directoryId } = this.#options;
    const doubted = this.doubts.names;
    const mark: BackupMark = {
      format: FORMAT,
      directory: directoryId.toString("hex"),
      asOf,
      ...(doubted.length > 0 && { doubted }),
    };
    await replaceFile(files, this.layout.backup, Buffer.from(`${JSON.stringify(mark)}\n`));
    await files.syncDirectory(this.layout.root);
  }
}

/** The directories that a backup makes are its own: through a link, it would write and remove elsewhere. */
async function assertOwn(files: SystemFiles, { journal, streams, trash, damaged }: Layout): Promise<void> {
  const check = async (path: string): Promise<void> => {
    if ((await files.linkStatus(path))?.kind !== "link") return;
    throw new DirectoryError(`${path} is a symbolic link, which a backup does not have: remove it`);
  };
  for (const path of [journal, streams, trash, damaged]) await check(path);
  for (const shard of await files.list(streams)) await check(join(streams, shard));
}

/** Neither may be the other, or lie in it. Paths may have links: the directories above are asked for by the system. */
async function assertApart(files: SystemFiles, to: string, from: string): Promise<void> {
  if (await liesIn(files, to, from)) throw new DirectoryError(`the backup ${to} can't be ${from} or lie in it`);
  if (await liesIn(files, from, to)) throw new DirectoryError(`the backup ${to} can't be above ${from}`);
}

async function liesIn(files: SystemFiles, path: string, root: string): Promise<boolean> {
  const wanted = await files.status(root);
  let at = path;
  // What is not there yet will be made below what is.
  while ((await files.status(at)) === null) at = resolve(at, "..");
  for (let before = await files.status(at); before !== null && wanted !== null; at = `${at}/..`) {
    if (before.inode === wanted.inode && before.device === wanted.device) return true;
    const above = await files.status(`${at}/..`);
    if (above?.inode === before.inode && above.device === before.device) return false;
    before = above;
  }
  return false;
}

/** What an earlier backup of the same directory doubts: that is all that may be there already. */
async function doubtedIn({ files, from, directoryId }: DestinationOptions, layout: Layout): Promise<readonly string[]> {
  const isFree = (name: string): boolean => name === "lock" || claimIdOf(name) !== null || isOfSystem(name);
  const names = (await files.list(layout.root)).filter((name) => !isFree(name));
  const bytes = await readWhole(files, layout.backup);
  // Killed before it had changed anything else.
  if (bytes === null && names.every((name) => join(layout.root, name) === `${layout.backup}.new`)) return [];
  if (bytes === null) {
    const why = names.includes("streamdir.json") ? "a server has had it open, or it never was one" : "it is not empty";
    throw new DirectoryError(`${layout.root} is no backup: ${why}; name a directory that is new or empty`);
  }
  if (directoryIn(bytes) !== directoryId.toString("hex"))
    throw new DirectoryError(`${layout.root} is a backup of another directory than ${from.root}`);
  return namesIn(bytes);
}

function directoryIn(bytes: Buffer): string | null {
  return /^\{"format":1,"directory":"([0-9a-f]{16})",/.exec(bytes.toString("utf8"))?.[1] ?? null;
}

function namesIn(bytes: Buffer): readonly string[] {
  const mark: unknown = parsed(bytes);
  if (typeof mark !== "object" || mark === null) return [EVERYTHING];
  if (!("doubted" in mark)) return [];
  const { doubted } = mark;
  return Array.isArray(doubted) && doubted.every((name) => typeof name === "string") ? doubted : [EVERYTHING];
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    // Its end was changed by hand.
    return null;
  }
}
