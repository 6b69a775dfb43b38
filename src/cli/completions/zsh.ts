// Completion for zsh.

import type { DescribedCommand } from "../command/described.js";
import type { DescribedTask } from "../command/task-help.js";
import type { TaskFlag } from "../command/task.js";
import { completedOf, singleQuoted, takesValue, writtenForms, type Completed } from "./flag-values.js";

/** A script that defines the completion of `streamdir`: to be evaluated, or a file `_streamdir` in `fpath`. */
export function zshCompletion(commands: readonly DescribedCommand[]): string {
  return `#compdef streamdir
# Completion of streamdir for zsh.
_streamdir() {
  if (( CURRENT == 2 )); then
    local -a commands=(
${described(commands)}
    )
    _describe -t commands command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
${commands.map(branchOf).join("\n")}
  esac
}
if [[ $funcstack[1] == _streamdir ]]; then _streamdir "$@"; else compdef _streamdir streamdir; fi
`;
}

function branchOf(command: DescribedCommand): string {
  const { name, tasks } = command;
  if (tasks.length === 0) return `    ${name}) ${argumentsOf(command)} ;;`;
  return `    ${name})
      if (( CURRENT == 2 )); then
        local -a tasks=(
${described(tasks)}
        )
        _describe -t commands ${singleQuoted(`${name} command`)} tasks
        return
      fi
      shift words
      (( CURRENT-- ))
      case $words[1] in
${tasks.map((task) => `        ${task.name}) ${argumentsOf(task)} ;;`).join("\n")}
      esac ;;`;
}

function described(commands: readonly Pick<DescribedTask, "name" | "summary">[]): string {
  return commands.map(({ name, summary }) => `      ${singleQuoted(`${name}:${summary}`)}`).join("\n");
}

function argumentsOf({ flags, words = [] }: DescribedTask): string {
  const rows = [
    ...flags.flatMap(rowsOf),
    singleQuoted("(- *)--help[print the help]"),
    ...words.map(({ placeholder, isRequired }, at) =>
      singleQuoted(`${at + 1}:${isRequired ? "" : ":"}${placeholder}${actionOf(completedOf(placeholder))}`),
    ),
  ];
  return `_arguments -s ${rows.join(" ")}`;
}

function rowsOf(flag: TaskFlag): string[] {
  const help = flag.help.replaceAll(/[[\]\\:]/g, "\\$&");
  const value = takesValue(flag) ? `:${flag.placeholder}${actionOf(completedOf(flag.placeholder))}` : "";
  return writtenForms(flag).map((form) => {
    const joined = takesValue(flag) ? (form.startsWith("--") ? "=" : "+") : "";
    return singleQuoted(`${form}${joined}[${help}]${value}`);
  });
}

function actionOf(completed: Completed): string {
  switch (completed.kind) {
    case "file":
      return ":_files";
    case "directory":
      return ":_files -/";
    case "words":
      return `:(${completed.words.join(" ")})`;
    case "unknown":
      return ": ";
  }
}
