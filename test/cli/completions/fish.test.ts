import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test, { describe } from "node:test";
import { COMMANDS } from "../../../src/cli/commands.js";
import { fishCompletion } from "../../../src/cli/completions/fish.js";
import { COMPLETED, directoryToComplete, installed } from "./completed-lines.js";

/** What a real fish makes of a line: each word without what it says of it. */
function complete(line: string): string[] {
  const script = `${fishCompletion(COMMANDS)}\ncomplete -C '${line}'`;
  const cwd = directoryToComplete();
  const { stdout, stderr } = spawnSync("fish", ["--no-config", "-c", script], {
    cwd,
    env: { ...process.env, HOME: cwd },
    encoding: "utf8",
  });
  assert.equal(stderr, "");
  return stdout
    .split("\n")
    .filter((word) => word !== "")
    .map((word) => word.split("\t")[0] ?? "");
}

describe("fish completes", { skip: installed("fish") }, () => {
  for (const [line, wanted] of COMPLETED) test(line, () => assert.deepEqual(complete(line).sort(), [...wanted].sort()));

  test("directories where one is meant", () => assert.deepEqual(complete("streamdir verify a-"), ["a-dir/"]));
});
