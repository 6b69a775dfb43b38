import assert from "node:assert/strict";
import { join } from "node:path";
import { backUp, type BackupOptions, type BackupProgress, type BackupSummary } from "../../src/storage/file/backup/backup.js";
import { systemFiles, type SystemFiles } from "../../src/storage/file/disk/files.js";
import { Layout } from "../../src/storage/file/format/layout.js";
import { append, bytesOf, copyOf, created, keptLog, openEngine, type Engine } from "./engine.js";
import { findings } from "./repaired-directory.js";
import { ManualClock } from "./manual-clock.js";
import { tempDir } from "./temp-dir.js";
import { diskError } from "./watched-files.js";

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

/** Files of which this one can't be opened or looked at, or these. */
export function without(unread: string | RegExp): SystemFiles {
  return filesWith((call, path) => {
    if ((typeof unread === "string" ? path === unread : unread.test(path)) && ["open", "linkStatus", "list"].includes(call))
      throw diskError("EIO");
  });
}

/** A closed directory with two streams of 3 segments each, a backup of it, and what came since. */
export async function backedUp(): Promise<{ dir: string; dest: string; layout: Layout; copy: Layout }> {
  const engine = await openEngine();
  const [s, other] = [await created(engine.storage, "s", bytesOf(5000, 1)), await created(engine.storage, "other", bytesOf(5000, 1))];
  for (const stream of [s, other]) await append(engine.storage, stream, bytesOf(5000, 2));
  await engine.storage.close();
  const dest = join(tempDir(), "backup");
  await makeBackup(engine.dir, dest);
  const again = await openEngine({ dir: engine.dir });
  for (const name of ["s", "other"]) {
    const stream = await again.storage.load(name);
    assert.ok(stream !== null);
    await append(again.storage, stream, bytesOf(5000, 3));
  }
  await again.storage.close();
  return { dir: engine.dir, dest, layout: new Layout(engine.dir), copy: new Layout(dest) };
}
