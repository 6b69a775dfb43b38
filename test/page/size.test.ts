import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "../helpers/built-package.js";
import { tempDir } from "../helpers/temp-dir.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAX_BYTES = 60 * 1024;

test("the page as it is built has at most 60 KiB in all", () => {
  const dir = tempDir();
  build("build:page", dir);
  const files = readdirSync(dir);
  assert.deepEqual(files.sort(), readdirSync(join(ROOT, "src/page")).sort());
  const bytes = files.reduce((sum, file) => sum + statSync(join(dir, file)).size, 0);
  assert.ok(bytes > 10 * 1024 && bytes <= MAX_BYTES, `${bytes} bytes`);
});
