import type { Task, TaskFlag, Tool } from "./task.js";

/** What `streamdir TOOL --help` prints, or `streamdir TOOL TASK --help`: at most 100 columns wide. */
export function taskHelp(tool: Tool, task: Task | null): string {
  return [...(task === null ? linesOfTool(tool) : linesOfTask(tool, task)), ""].join("\n");
}

function linesOfTool({ name, summary, tasks }: Tool): string[] {
  return [
    `Usage: streamdir ${name} COMMAND [flags]`,
    "",
    `${capitalised(summary)}.`,
    "",
    "Commands, each with a --help of its own:",
    ...tasks.map((task) => columns(task.name, task.summary)),
  ];
}

function linesOfTask(tool: Tool, { name, summary, flags }: Task): string[] {
  const needed = flags.filter(({ isRequired }) => isRequired).map((flag) => ` ${writtenFlag(flag)}`);
  return [
    `Usage: streamdir ${tool.name} ${name}${needed.join("")} [flags]`,
    "",
    `${capitalised(summary)}.`,
    "",
    "Flags:",
    ...flags.flatMap((flag) => [
      columns(writtenFlag(flag), flag.help),
      ...(flag.env === null ? [] : [columns("", `${flag.env} also sets it`)]),
    ]),
    columns("-h, --help", "print this text"),
  ];
}

function writtenFlag({ flag, placeholder }: TaskFlag): string {
  return placeholder === "" ? `--${flag}` : `--${flag} ${placeholder}`;
}

function capitalised(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function columns(left: string, right: string): string {
  return `  ${left.padEnd(24)}${right}`;
}
