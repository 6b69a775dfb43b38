import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { describe } from "node:test";
import { COMMANDS } from "../../../src/cli/commands.js";
import { zshCompletion } from "../../../src/cli/completions/zsh.js";
import { COMPLETED, directoryToComplete, installed } from "./completed-lines.js";

/** A zsh on a terminal of its own: what is typed is completed there, and each word that is offered is printed in brackets. */
const HARNESS = `
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PROMPT=; autoload -U compinit; compinit -u -D; source ./completion'
zpty -w z 'compadd() { local -a found; builtin compadd -O found "$@"; local each; for each in $found; print -n "[$each]"; builtin compadd "$@" }'
zpty -w z 'zstyle ":completion:*" list-grouped false; done-typing() { print -n "{ov""er}"; zle kill-buffer }; zle -N done-typing; bindkey "^X" done-typing'
zpty -w z 'print "{rea""dy}"'
zpty -r z ready '*{ready}*'
zpty -w -n z "$1"$'\\t\\x18'
zpty -r z over '*{over}*'
print -r -- $over
zpty -d z
`;

/** What a real zsh makes of a line. */
function complete(line: string): string[] {
  const cwd = directoryToComplete();
  writeFileSync(join(cwd, "completion"), zshCompletion(COMMANDS));
  const { stdout, stderr } = spawnSync("zsh", ["-f", "-c", HARNESS, "zsh", line], {
    cwd,
    env: { ...process.env, HOME: cwd, TERM: "dumb" },
    encoding: "utf8",
    timeout: 120_000,
  });
  assert.equal(stderr, "");
  return [...stdout.matchAll(/\[([^\][]+)\]/g)].map(([, word = ""]) => word);
}

describe("zsh completes", { skip: installed("zsh") }, () => {
  for (const [line, wanted] of COMPLETED)
    test(line, () => {
      const found = complete(line);
      assert.deepEqual([...new Set(found)].sort(), [...wanted].sort());
    });
});
