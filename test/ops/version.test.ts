import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { packageVersion } from "../../src/ops/version.js";
import { tempDir } from "../helpers/temp-dir.js";

test("the version is that of package.json", () => {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  assert.equal(packageVersion(), version);
});

test("a bundle without a package.json has an unknown one, and a package.json that is no JSON is an error", async () => {
  const dir = tempDir();
  const place = join(dir, "dist", "ops");
  mkdirSync(place, { recursive: true });
  copyFileSync(new URL("../../src/ops/version.ts", import.meta.url), join(place, "version.ts"));
  const copied = (await import(pathToFileURL(join(place, "version.ts")).href)) as { packageVersion: typeof packageVersion }; // a copy of it
  assert.equal(copied.packageVersion(), "unknown");
  writeFileSync(join(dir, "package.json"), "{");
  assert.throws(() => copied.packageVersion(), SyntaxError);
});
