import { resolve } from "node:path";
import { createLog, oneLine } from "../ops/log.js";
import { explainUnusable } from "../storage/file/directory/directory.js";
import { assertUnlocked, DirectoryError, lockDirectory } from "../storage/file/directory/lock.js";
import { findMarker } from "../storage/file/directory/marker.js";
import { assertOwner } from "../storage/file/directory/owner.js";
import { systemFiles, type Files } from "../storage/file/disk/files.js";
import { Layout } from "../storage/file/format/layout.js";
import { UPGRADE_TARGET } from "../storage/file/upgrade/upgrade-steps.js";
import { upgradeDirectory } from "../storage/file/upgrade/upgrade.js";
import { EXIT, type Invocation, type Surroundings } from "./command/verb.js";

/**
 * Brings a directory that no server has open to the format of this version: says what it does, a line for each step.
 * With `--dry-run` it only says so. Resolves to 0 when the directory has that format, or would have it; else to 1.
 */
export async function upgrade(
  { dir, switches }: Invocation,
  { stdout, stderr }: Surroundings,
  target = UPGRADE_TARGET,
): Promise<number> {
  const layout = new Layout(resolve(dir));
  const files = systemFiles(true);
  const force = switches.has("force-unlock");
  const apply = !switches.has("dry-run");
  const log = createLog({ level: "warn", format: "text", write: (line) => void stderr.write(`${line}\n`) });
  const say = (line: string): void => void stdout.write(`${oneLine(line)}\n`);
  try {
    await assertMarked(files, layout, target.format);
    await (apply ? assertOwner(layout) : assertUnlocked(files, layout.lock, force));
    const unlock = apply ? await lockDirectory(files, layout.lock, { force, log }) : null;
    try {
      await upgradeDirectory({ files, layout, target, apply, say });
      return EXIT.done;
    } finally {
      await unlock?.();
    }
  } catch (thrown) {
    const error = explainUnusable(layout.root, thrown);
    if (!(error instanceof DirectoryError)) throw error;
    stderr.write(`streamdir: ${oneLine(error.message)}\n`);
    return EXIT.unusable;
  }
}

async function assertMarked(files: Files, layout: Layout, format: number): Promise<void> {
  if ((await findMarker(files, layout, format)) === null)
    throw new DirectoryError(`${layout.root} is not a data directory of streamdir: ${layout.marker} is missing`);
}
