import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made = new Set<string>();

// At the exit of the test's process, not in an after hook: hooks run first in, first out, so one of a directory that
// was made first would run while a server, started after it, still writes there.
process.once("exit", () => {
  for (const dir of made) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

/** A new empty directory, removed when this test file's process ends. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "streamdir-test-"));
  made.add(dir);
  return dir;
}
