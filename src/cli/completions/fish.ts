// Completion for fish.

import type { DescribedCommand } from "../command/described.js";
import type { TaskFlag } from "../command/task.js";
import { callable, completedOf, singleQuoted, takesValue } from "./flag-values.js";

/** A script that defines the completion of `streamdir`. */
export function fishCompletion(commands: readonly DescribedCommand[]): string {
  const tools = commands.filter(({ tasks }) => tasks.length > 0);
  const lines = [
    ...commands.map(({ name, summary }) => wordLine("__streamdir_has 0", name, summary)),
    ...tools.flatMap(({ name, tasks }) =>
      tasks.map((task) => wordLine(`__streamdir_has 1; and __streamdir_is ${name}`, task.name, task.summary)),
    ),
    ...callable(commands).flatMap(({ called, flags, words = [] }) => {
      const when = `-n ${singleQuoted(`__streamdir_is ${called}`)}`;
      const isPath = words.some(({ placeholder }) => completedOf(placeholder).kind === "directory");
      const paths = isPath ? [`complete -c streamdir ${when} -a '(__fish_complete_directories)'`] : [];
      return [...paths, ...flags.map((flag) => `complete -c streamdir ${when} ${flagWords(flag)}`)];
    }),
  ];
  return `# Completion of streamdir for fish.
function __streamdir_has
    test (count (commandline -opc)) -eq (math $argv[1] + 1)
end
function __streamdir_is
    set -l typed (commandline -opc)
    set -l last (math 1 + (count $argv))
    set -l begun $typed[2..$last]
    test (count $typed) -ge $last -a "$begun" = "$argv"
end
complete -c streamdir -f
complete -c streamdir -l help -s h -d 'print the help'
${lines.join("\n")}
`;
}

function wordLine(condition: string, name: string, summary: string): string {
  return `complete -c streamdir -n ${singleQuoted(condition)} -a ${name} -d ${singleQuoted(summary)}`;
}

function flagWords(flag: TaskFlag): string {
  const short = flag.short === undefined ? "" : ` -s ${flag.short}`;
  const named = `-l ${flag.flag}${short}`;
  const help = `-d ${singleQuoted(flag.help)}`;
  if (!takesValue(flag)) return `${named} ${help}`;
  const completed = completedOf(flag.placeholder);
  switch (completed.kind) {
    case "file":
      return `${named} -r -F ${help}`;
    case "directory":
      return `${named} -x -a '(__fish_complete_directories)' ${help}`;
    case "words":
      return `${named} -x -a ${singleQuoted(completed.words.join(" "))} ${help}`;
    case "unknown":
      return `${named} -x ${help}`;
  }
}
