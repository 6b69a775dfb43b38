import assert from "node:assert/strict";
import { backUp, type BackupOptions, type BackupProgress, type BackupSummary } from "../../src/storage/file/backup/backup.js";
import { systemFiles, type SystemFiles } from "../../src/storage/file/disk/files.js";
import { copyOf, keptLog, openEngine, type Engine } from "./engine.js";
import { findings } from "./repaired-directory.js";
import { ManualClock } from "./manual-clock.js";

/** What came of a backup. */
export interface MadeBackup extends BackupSummary {
  /** What was wrong in the directory, a line for each. */
  readonly lines: readonly string[];
  readonly progress: readonly BackupProgress[];
}

/** Backs up `dir` to `dest`. */
export async function makeBackup(dir: string, dest: string, more: Partial<BackupOptions> = {}): Promise<MadeBackup> {
  const lines: string[] = [];
  const progress: BackupProgress[] = [];
  const summary = await backUp({
    dir,
    dest,
    files: systemFiles(false),
    force: false,
    clock: new ManualClock(),
    log: keptLog().log,
    report: ({ stream, file, problem }) => void lines.push(`${stream ?? ""}: ${file.slice(dir.length + 1)}: ${problem}`),
    progress: (state) => void progress.push(state),
    stop: new AbortController().signal,
    ...more,
  });
  return { ...summary, lines, progress };
}

/** An engine on a copy of a backup in which `verify` finds nothing: the backup stays one. */
export async function restored(dest: string): Promise<Engine> {
  assert.deepEqual(await findings(dest), []);
  return openEngine({ dir: copyOf(dest) });
}

/** Files that call `before` ahead of each call that takes a path, with that call's name and path. */
export function filesWith(before: (call: string, path: string) => Promise<void> | void): SystemFiles {
  return new Proxy(systemFiles(false), {
    get(files, name, receiver) {
      const own: unknown = Reflect.get(files, name, receiver);
      if (typeof own !== "function" || typeof name !== "string") return own;
      return async (...args: unknown[]) => {
        await before(name, String(args[0]));
        return own.apply(files, args) as unknown;
      };
    },
  });
}
