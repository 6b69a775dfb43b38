import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { packagedFiles } from "../../src/ops/packaged-files.js";
import { tempDir } from "../helpers/temp-dir.js";

test("the files of a folder are read, and there are none without it", () => {
  const dir = tempDir();
  writeFileSync(join(dir, "a.js"), "one");
  writeFileSync(join(dir, "b.css"), "two");
  const folder = pathToFileURL(`${dir}/`);
  assert.deepEqual([...packagedFiles(folder)].map(([name, bytes]) => [name, String(bytes)]).sort(), [
    ["a.js", "one"],
    ["b.css", "two"],
  ]);
  assert.equal(packagedFiles(new URL("none/", folder)).size, 0);
  mkdirSync(join(dir, "folder"));
  assert.throws(() => packagedFiles(folder), { code: "EISDIR" });
});
