import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tempDir } from "../../helpers/temp-dir.js";

/** Lines, and the words that may stand at their end. */
export const COMPLETED: readonly (readonly [line: string, words: readonly string[]])[] = [
  ["streamdir c", ["create", "cat", "close", "completions"]],
  ["streamdir token re", ["revoke"]],
  ["streamdir completions ", ["bash", "zsh", "fish"]],
  ["streamdir cat --fr", ["--from"]],
  ["streamdir tail jobs/42 --f", ["--follow", "--from"]],
  ["streamdir token add --exp", ["--expires"]],
  ["streamdir serve --log-level s", ["silent"]],
  ["streamdir ls --token-file a-f", ["a-file"]],
  ["streamdir cat jobs/", []],
];

/** Why the tests of a shell are left out; `false` where it is there. */
export function installed(shell: string): string | false {
  return spawnSync(shell, ["--version"]).status !== 0 && `${shell} is not installed`;
}

/** A directory with a file and a directory in it. */
export function directoryToComplete(): string {
  const dir = tempDir();
  writeFileSync(join(dir, "a-file"), "");
  mkdirSync(join(dir, "a-dir"));
  return dir;
}
