// The tool `completions`: what a shell needs to know to complete a command line.

import type { DescribedCommand } from "../command/described.js";
import type { Task, Tool } from "../command/task.js";
import { EXIT } from "../command/verb.js";
import { bashCompletion } from "./bash.js";
import { fishCompletion } from "./fish.js";
import { zshCompletion } from "./zsh.js";

type Script = (commands: readonly DescribedCommand[]) => string;

/** The row of the table of tools. `commands` gives all rows, this one too. */
export function completions(commands: () => readonly DescribedCommand[]): Tool {
  const shell = (name: string, script: Script, help: string): Task => ({
    name,
    summary: `print what ${name} needs: ${help}`,
    flags: [],
    run: (_given, { stdout }) => {
      stdout.write(script(commands()));
      return Promise.resolve(EXIT.done);
    },
  });
  return {
    name: "completions",
    summary: "print what a shell needs to complete command lines of streamdir",
    tasks: [
      shell("bash", bashCompletion, 'eval "$(streamdir completions bash)" in ~/.bashrc'),
      shell("zsh", zshCompletion, 'eval "$(streamdir completions zsh)" in ~/.zshrc, after compinit'),
      shell("fish", fishCompletion, "streamdir completions fish | source in config.fish"),
    ],
  };
}
