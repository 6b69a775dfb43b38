import assert from "node:assert/strict";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { startNode } from "../helpers/process.js";
import type { Ended } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

const BIN = fileURLToPath(new URL("../../bin", import.meta.url));

/** Runs a copy of bin/streamdir.js beside a dist/cli/main.js that holds `main`, or beside none. */
function runBin(t: TestContext, main: string | null, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const root = tempDir();
  cpSync(BIN, join(root, "bin"), { recursive: true });
  if (main !== null) {
    mkdirSync(join(root, "dist", "cli"), { recursive: true });
    writeFileSync(join(root, "package.json"), '{ "type": "module" }');
    writeFileSync(join(root, "dist", "cli", "main.js"), main);
  }
  return startNode(t, [join(root, "bin", "streamdir.js"), "a", "--b"], { env }).ended;
}

describe("bin/streamdir.js", () => {
  test("starts dist/cli/main.js with its arguments", async (t) => {
    const { status, stdout } = await runBin(t, "console.log(process.argv.slice(2).join()); process.exitCode = 3;");
    assert.deepEqual([status, stdout], [3, "a,--b\n"]);
  });

  test("says what to do when there is no dist", async (t) => {
    const { status, stderr } = await runBin(t, null);
    assert.deepEqual([status, stderr], [1, "streamdir: dist/ is missing here: run npm run build\n"]);
  });

  // The pool's threads are only to be seen in /proc; Node has some of its own besides.
  const countThreads = 'import { readdirSync, stat } from "node:fs"; stat(".", () => console.log(readdirSync("/proc/self/task").length));';
  test("starts a pool of 32 threads, or of as many as the environment says", { skip: process.platform !== "linux" && "no /proc" }, async (t) => {
    const runs = [runBin(t, countThreads), runBin(t, countThreads, { UV_THREADPOOL_SIZE: "4" })];
    const [byDefault = 0, asTold = 0] = (await Promise.all(runs)).map(({ stdout }) => Number(stdout));
    assert.equal(byDefault - asTold, 28);
  });
});
