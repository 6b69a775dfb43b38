import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { startStreamdir } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

describe("the command", () => {
  test("prints its help and ends with 0", async (t) => {
    const { status, stdout, stderr } = await startStreamdir(t, ["--help"]).ended;
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /^Usage: streamdir \[serve\|verify\|repair\|backup\|upgrade\|systemd\] \[DIR\] \[flags\]\n/);
  });

  test("prints the help of one command", async (t) => {
    const { status, stdout } = await startStreamdir(t, ["verify", "--help"]).ended;
    assert.equal(status, 0);
    assert.match(stdout, /^Usage: streamdir verify \[DIR\] \[flags\]\n/);
    const { stdout: served } = await startStreamdir(t, ["serve", "--help"]).ended;
    assert.match(served, /^Usage: streamdir \[serve/);
  });

  test("prints the version of its package and ends with 0", async (t) => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
    const { status, stdout, stderr } = await startStreamdir(t, ["--version"]).ended;
    assert.deepEqual([status, stdout, stderr], [0, `${version}\n`, ""]);
  });

  const wrong: readonly [args: readonly string[], env: Readonly<Record<string, string>>, line: string][] = [
    [["--port", "x"], {}, '--port must be from 0 to 65535, not "x"'],
    [["tail"], {}, "streamdir tail needs NAME"],
    [["--port", "0", "tail"], {}, "a command stands before all flags: streamdir tail; a directory of that name is ./tail"],
    [[], { STREAMDIR_PROT: "1" }, 'unknown environment variable "STREAMDIR_PROT"; did you mean STREAMDIR_PORT?'],
  ];
  for (const [args, env, line] of wrong) {
    test(`ends with 64 and makes no directory: ${line}`, async (t) => {
      const cwd = tempDir();
      const { status, stdout, stderr } = await startStreamdir(t, args, { cwd, env }).ended;
      assert.deepEqual([status, stdout, stderr], [64, "", `streamdir: ${line}\n`]);
      assert.deepEqual(readdirSync(cwd), []);
    });
  }
});
