// Commands with flags of their own: `streamdir TOOL TASK --flag value`.

import { parseArgs } from "node:util";
import { nearest } from "./nearest.js";
import { parseDuration, quoted } from "./value.js";
import type { Surroundings } from "./verb.js";

/** A flag of a task. */
export interface TaskFlag {
  /** Without its dashes. */
  readonly flag: string;
  /** `list` takes words between commas, and may be given several times; `duration` is like `30d`. */
  readonly kind: "text" | "duration" | "flag" | "list";
  /** What stands for its value in the help; empty where it takes none. */
  readonly placeholder: string;
  readonly isRequired: boolean;
  /** The variable that also sets it; `null` where there is none. */
  readonly env: string | null;
  readonly help: string;
}

/** One thing that a tool does. */
export interface Task {
  readonly name: string;
  /** What it does, for the help. */
  readonly summary: string;
  readonly flags: readonly TaskFlag[];
  /** Resolves to the exit status. Rejects only on a fault of the program. */
  run(given: Given, surroundings: Surroundings): Promise<number>;
}

/** A command with tasks. */
export interface Tool {
  readonly name: string;
  readonly summary: string;
  readonly tasks: readonly Task[];
}

/** The values of the flags that were given, by their names without dashes. */
export class Given {
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(values: ReadonlyMap<string, readonly string[]>) {
    this.#values = values;
  }

  has(flag: string): boolean {
    return this.#values.has(flag);
  }

  /** The last value; `null` when there is none. */
  text(flag: string): string | null {
    return this.#values.get(flag)?.at(-1) ?? null;
  }

  /** The last value, of a flag that is required. */
  required(flag: string): string {
    return this.text(flag) ?? "";
  }

  /** The words of all values. */
  list(flag: string): string[] {
    return (this.#values.get(flag) ?? []).flatMap((value) => value.split(",")).map((word) => word.trim());
  }

  /** The last value in milliseconds; `null` when there is none. */
  durationMs(flag: string): number | null {
    const text = this.text(flag);
    return text === null ? null : parseDuration(text);
  }
}

/** What the words after the name of a tool ask for. `line` says what is wrong and what would be right. */
export type TaskCommand =
  | { readonly kind: "run"; readonly task: Task; readonly given: Given }
  | { readonly kind: "help"; readonly task: Task | null }
  | { readonly kind: "usage-error"; readonly line: string };

/** What `args`, after the tool's name, and `env` ask for. A flag wins over its variable. */
export function parseTask(
  tool: Tool,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): TaskCommand {
  const [name, ...rest] = args;
  const task = tool.tasks.find((known) => known.name === name) ?? null;
  if (args.some((arg) => arg === "--help" || arg === "-h")) return { kind: "help", task };
  if (task !== null) return readTask(tool, task, rest, env);
  const names = tool.tasks.map((known) => known.name);
  if (name === undefined) return wrong(`streamdir ${tool.name} needs a command: ${names.join(", ")}`);
  const meant = nearest(name, names);
  const hint = meant === null ? `it has ${names.join(", ")}` : `did you mean ${meant}?`;
  return wrong(`streamdir ${tool.name} has no command ${quoted(name)}; ${hint}`);
}

function readTask(
  tool: Tool,
  task: Task,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): TaskCommand {
  const values = new Map<string, string[]>();
  for (const { flag, env: variable } of task.flags) {
    const value = variable === null ? undefined : env[variable];
    if (value !== undefined && value !== "") values.set(flag, [value]);
  }
  const given = new Map<string, string[]>();
  const called = `streamdir ${tool.name} ${task.name}`;
  const types = task.flags.map(({ flag, kind }) => [flag, { type: kind === "flag" ? "boolean" : "string" }] as const);
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(types),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === "option-terminator") continue;
    if (token.kind === "positional") return wrong(`${called} takes no ${quoted(token.value)}; it has flags only`);
    const flag = task.flags.find((known) => token.rawName === `--${known.flag}`);
    if (flag === undefined)
      return wrong(`unknown flag ${quoted(token.rawName)}; ${suggestion(called, task, token.name)}`);
    const fault = faultOfValue(flag, token.value, token.inlineValue === true);
    if (fault !== null) return wrong(`--${flag.flag} ${fault}`);
    given.set(flag.flag, [...(given.get(flag.flag) ?? []), token.value ?? ""]);
  }
  for (const [flag, value] of given) values.set(flag, value);
  const missing = task.flags.find(({ flag, isRequired }) => isRequired && !values.has(flag));
  if (missing !== undefined) return wrong(`${called} needs --${missing.flag} ${missing.placeholder}`);
  return { kind: "run", task, given: new Given(values) };
}

function faultOfValue({ kind, placeholder }: TaskFlag, value: string | undefined, isInline: boolean): string | null {
  if (kind === "flag") return value === undefined ? null : "takes no value";
  // Another flag is no value, unless it is joined to this one by an equals sign.
  if (value === undefined || value === "" || (!isInline && value.startsWith("-")))
    return `needs a value: ${placeholder}`;
  if (kind === "duration" && parseDuration(value) === null)
    return `must be a time like 30d or 1h, not ${quoted(value)}`;
  if (kind === "list" && value.split(",").some((word) => word.trim() === "")) return "has an empty word between commas";
  return null;
}

function suggestion(called: string, task: Task, written: string): string {
  const meant = nearest(
    written,
    task.flags.map(({ flag }) => flag),
  );
  return meant === null ? `${called} --help lists them` : `did you mean --${meant}?`;
}

function wrong(line: string): TaskCommand {
  return { kind: "usage-error", line };
}
