import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { describe } from "node:test";
import { COMMANDS } from "../../../src/cli/commands.js";
import { bashCompletion } from "../../../src/cli/completions/bash.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { COMPLETED, directoryToComplete, installed } from "./completed-lines.js";

const SCRIPT = bashCompletion(COMMANDS);

/** What a real bash makes of a line in a directory; it cuts words at an equals sign and at a colon. */
function complete(line: string, cwd = directoryToComplete(), compopt = "", env = process.env): string[] {
  const words = line.split(/ |(=)/).filter((word) => word !== undefined);
  const quoted = words.map((word) => `'${word}'`).join(" ");
  const call = `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _streamdir`;
  const script = `${SCRIPT}\n${compopt}\n${call}; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync("bash", ["--norc", "-c", script], { cwd, env, encoding: "utf8" });
  assert.equal(stderr, "");
  return stdout.split("\n").filter((word) => word !== "");
}

describe("bash completes", { skip: installed("bash") }, () => {
  for (const [line, wanted] of COMPLETED) test(line, () => assert.deepEqual(complete(line).sort(), [...wanted].sort()));

  test("a value behind an equals sign", () => {
    assert.deepEqual(complete("streamdir serve --log-level=d"), ["debug"]);
    assert.deepEqual(complete("streamdir serve --log-format="), ["auto", "text", "json"]);
  });

  describe("names of files", () => {
    const names = ["a $(b)", "a*", "a;b"];
    const dir = tempDir();
    for (const name of [...names, "ab"]) writeFileSync(join(dir, name), "");
    mkdirSync(join(dir, "d e"));

    test("as they are, where bash quotes them", () => {
      assert.deepEqual(complete("streamdir serve --auth a", dir, "compopt() { return 0; }").sort(), [...names, "ab"].sort());
    });

    test("so that nothing of them runs where bash, like 3.2, does not", () => {
      const lacking = "compopt() { return 1; }";
      const quoted = complete("streamdir serve --auth a", dir, lacking);
      assert.deepEqual(quoted.sort(), ["a\\ \\$\\(b\\)", "a\\*", "a\\;b", "ab"].sort());
      assert.deepEqual(complete("streamdir serve d", dir, lacking), ["d\\ e"]);
      assert.deepEqual(complete("streamdir serve ~/d", tempDir(), lacking, { ...process.env, HOME: dir }), ["~/d\\ e"]);
      assert.deepEqual(complete("streamdir serve none", dir, lacking), []);
    });
  });
});
