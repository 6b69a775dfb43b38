import assert from "node:assert/strict";
import { test } from "node:test";
import type { Files } from "../../../../src/storage/file/disk/files.js";
import { freeDescriptors, openFilesLimit } from "../../../../src/storage/file/disk/open-files-limit.js";
import { diskError } from "../../../helpers/watched-files.js";

/** A system that says this of limits, and of which files are open; `null` where it has no such file. */
function system(limits: string | null, open: readonly string[] = []): Files {
  const file = { read: async (target: Buffer) => target.write(limits ?? ""), close: async () => undefined };
  const files: Pick<Files, "open" | "list"> = {
    open: async () => {
      if (limits === null) throw diskError("ENOENT");
      return file as unknown as Awaited<ReturnType<Files["open"]>>; // nothing else is asked of it
    },
    list: async () => [...open],
  };
  return files as Files; // nothing else is asked of it
}

const linesWith = (soft: string): string =>
  `Limit                     Soft Limit           Hard Limit           Units     \nMax processes             1                    2                    processes \nMax open files            ${soft.padEnd(20)} 4096                 files     \n`;

test("the limit is the soft one; none where the system sets none or does not tell", async () => {
  assert.equal(await openFilesLimit(system(linesWith("1024"))), 1024);
  assert.equal(await openFilesLimit(system(linesWith("unlimited"))), Infinity);
  assert.equal(await openFilesLimit(system(null)), Infinity);
});

test("what is free is the limit without what is open", async () => {
  assert.equal(await freeDescriptors(system(linesWith("10"), ["0", "1", "2"])), 7);
  assert.equal(await freeDescriptors(system(linesWith("2"), ["0", "1", "2"])), 0);
  assert.equal(await freeDescriptors(system(null)), Infinity);
});
