import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { isDirectory } from "../../src/cli/existing-directory.js";
import { tempDir } from "../helpers/temp-dir.js";

test("an existing directory is told from a file and from nothing", async () => {
  const dir = tempDir();
  mkdirSync(join(dir, "empty"));
  mkdirSync(join(dir, "full", "of"), { recursive: true });
  symlinkSync("full", join(dir, "link"));
  writeFileSync(join(dir, "file"), "");
  const rows: readonly [path: string, expected: boolean][] = [
    ["empty", true],
    ["full", true],
    ["link", true],
    ["file", false],
    ["file/in", false],
    ["none", false],
    ["none/in", false],
  ];
  for (const [path, expected] of rows) assert.equal(await isDirectory(join(dir, path)), expected, path);
  assert.equal(await isDirectory("/"), true);
  assert.equal(await isDirectory("."), true);
});

test("a directory's name that the system refuses is left to whoever opens it", async () => {
  assert.equal(await isDirectory("x".repeat(5000)), true);
});
