import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { DataDirectory } from "../../src/storage/file/directory/directory.js";
import { readWhole, removeFile } from "../../src/storage/file/disk/files.js";
import { replaceFile } from "../../src/storage/file/disk/replacement.js";
import type { UpgradeStep, UpgradeTarget } from "../../src/storage/file/upgrade/upgrade-steps.js";

/** What a made-up step from format 1 to 2 changes: each file of `damaged/` gets a new first line, and `gone` goes. */
export const FORMER: Readonly<Record<string, string>> = { "damaged/a": "a\n", "damaged/b/c": "c\n", "damaged/gone": "gone\n" };

/** The same files once the step is done. */
export const CHANGED: Readonly<Record<string, string | null>> = {
  "damaged/a": "format 2\na\n",
  "damaged/b/c": "format 2\nc\n",
  "damaged/gone": null,
};

const GONE = "damaged/gone";

/** A format 2 that was never made; `between` is called before each change. */
export function madeUpTarget(between: () => Promise<void> = async () => undefined): UpgradeTarget {
  const step: UpgradeStep = {
    from: 1,
    to: 2,
    what: "give each file a first line",
    async *changes({ files, layout }) {
      for (const path of Object.keys(FORMER)) if ((await readWhole(files, join(layout.root, path))) !== null) yield path;
    },
    async run(directory) {
      for (const path of Object.keys(FORMER)) {
        await between();
        await change(directory, path);
      }
      await between();
    },
  };
  return { format: 2, steps: [step] };
}

async function change({ files, layout }: DataDirectory, path: string): Promise<void> {
  const whole = join(layout.root, path);
  const bytes = await readWhole(files, whole);
  if (path === GONE) await removeFile(files, whole);
  else if (bytes !== null && !bytes.toString().startsWith("format 2\n"))
    await replaceFile(files, whole, Buffer.concat([Buffer.from("format 2\n"), bytes]));
  await files.syncDirectory(join(whole, ".."));
}

/** Whether `read` finds files as `expected` has them. */
export function areAs(expected: Readonly<Record<string, string | null>>, read: (path: string) => string | null): boolean {
  return isDeepStrictEqual(Object.fromEntries(Object.keys(expected).map((path) => [path, read(path)])), expected);
}
