import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test, { describe } from "node:test";
import { COMMANDS } from "../../../src/cli/commands.js";
import { bashCompletion } from "../../../src/cli/completions/bash.js";
import { COMPLETED, directoryToComplete, installed } from "./completed-lines.js";

const SCRIPT = bashCompletion(COMMANDS);

/** What a real bash makes of a line; it cuts words at an equals sign and at a colon. */
function complete(line: string): string[] {
  const words = line.split(/ |(=)/).filter((word) => word !== undefined);
  const quoted = words.map((word) => `'${word}'`).join(" ");
  const script = `${SCRIPT}\nCOMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _streamdir; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync("bash", ["--norc", "-c", script], { cwd: directoryToComplete(), encoding: "utf8" });
  assert.equal(stderr, "");
  return stdout.split("\n").filter((word) => word !== "");
}

describe("bash completes", { skip: installed("bash") }, () => {
  for (const [line, wanted] of COMPLETED) test(line, () => assert.deepEqual(complete(line).sort(), [...wanted].sort()));

  test("a value behind an equals sign", () => {
    assert.deepEqual(complete("streamdir serve --log-level=d"), ["debug"]);
    assert.deepEqual(complete("streamdir serve --log-format="), ["auto", "text", "json"]);
  });
});
