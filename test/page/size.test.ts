import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { tempDir } from "../helpers/temp-dir.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAX_BYTES = 60 * 1024;

test("the page as it is built has at most 60 KiB in all", () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const dir = tempDir();
  const command = String(scripts["build:page"]).replace("--outdir=dist/page", `--outdir=${dir}`);
  execFileSync("sh", ["-c", `node_modules/.bin/${command}`], { cwd: ROOT });
  const files = readdirSync(dir);
  assert.deepEqual(files.sort(), readdirSync(join(ROOT, "src/page")).sort());
  const bytes = files.reduce((sum, file) => sum + statSync(join(dir, file)).size, 0);
  assert.ok(bytes > 10 * 1024 && bytes <= MAX_BYTES, `${bytes} bytes`);
});
