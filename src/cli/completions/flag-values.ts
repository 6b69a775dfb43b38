// What a shell can know of a value from what stands for it in the help.

import type { DescribedCommand } from "../command/described.js";
import type { DescribedTask } from "../command/task-help.js";
import type { TaskFlag } from "../command/task.js";

/** What may stand in a place: paths, one of a few words, or what no shell can know. */
export type Completed =
  { readonly kind: "file" | "directory" | "unknown" } | { readonly kind: "words"; readonly words: readonly string[] };

/** What may stand for a placeholder of the help. */
export function completedOf(placeholder: string): Completed {
  if (placeholder === "FILE") return { kind: "file" };
  if (placeholder === "DIR" || placeholder === "DEST") return { kind: "directory" };
  return /^[a-z0-9]+(\|[a-z0-9]+)+$/.test(placeholder)
    ? { kind: "words", words: placeholder.split("|") }
    : { kind: "unknown" };
}

/** A flag as it is written, in each of its forms. */
export function writtenForms({ flag, short }: TaskFlag): string[] {
  return short === undefined ? [`--${flag}`] : [`--${flag}`, `-${short}`];
}

/** Whether a flag takes a value. */
export function takesValue({ kind }: TaskFlag): boolean {
  return kind !== "flag";
}

/** What can be called: each command, with tasks of its own each of them, by all its words. */
export function callable(commands: readonly DescribedCommand[]): (DescribedTask & { readonly called: string })[] {
  return commands.flatMap((command) =>
    command.tasks.length === 0
      ? [{ ...command, called: command.name }]
      : command.tasks.map((task) => ({ ...task, called: `${command.name} ${task.name}` })),
  );
}

/** A text between single quotes, as all three shells take it, save for quotes within: those become another sign. */
export function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "’")}'`;
}
