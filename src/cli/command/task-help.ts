import type { Task, TaskFlag, TaskWord, Tool } from "./task.js";

const WIDTH = 24;

/** A task, without what it does. */
export type DescribedTask = Pick<Task, "name" | "summary" | "flags" | "words">;

/** What `streamdir TOOL --help` prints, or `streamdir TOOL TASK --help`: at most 100 columns wide. */
export function taskHelp(tool: Tool, task: Task | null): string {
  return [...(task === null ? linesOfTool(tool) : linesOfTask(`${tool.name} ${task.name}`, task)), ""].join("\n");
}

/** What `streamdir TASK --help` prints for a task without a tool: at most 100 columns wide. */
export function loneTaskHelp(task: DescribedTask): string {
  return [...linesOfTask(task.name, task), ""].join("\n");
}

/** How a task is called, after `streamdir `: its words, and the flags that it needs. */
export function usageOf(called: string, { words = [], flags }: DescribedTask): string {
  const needed = flags.filter(({ isRequired }) => isRequired).map((flag) => ` ${writtenFlag(flag)}`);
  return `${called}${words.map((word) => ` ${writtenWord(word)}`).join("")}${needed.join("")} [flags]`;
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

function linesOfTask(called: string, task: DescribedTask): string[] {
  return [
    `Usage: streamdir ${usageOf(called, task)}`,
    "",
    `${capitalised(task.summary)}.`,
    "",
    "Flags:",
    ...task.flags.flatMap((flag) => [
      columns(writtenFlag(flag), flag.help),
      ...(flag.env === null ? [] : [columns("", `${flag.env} also sets it${defaultOf(flag)}`)]),
    ]),
    columns("-h, --help", "print this text"),
  ];
}

function writtenWord({ placeholder, isRequired }: TaskWord): string {
  return isRequired ? placeholder : `[${placeholder}]`;
}

/** A flag as the help writes it, with what stands for its value. */
export function writtenFlag({ flag, short, placeholder }: TaskFlag): string {
  const name = short === undefined ? `--${flag}` : `-${short}, --${flag}`;
  return placeholder === "" ? name : `${name} ${placeholder}`;
}

function capitalised(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function defaultOf({ default: written }: TaskFlag): string {
  return written === undefined ? "" : `; ${written} by default`;
}

/** A left side that is too long has a line of its own. */
function columns(left: string, right: string): string {
  return left.length < WIDTH ? `  ${left.padEnd(WIDTH)}${right}` : `  ${left}\n  ${" ".repeat(WIDTH)}${right}`;
}
