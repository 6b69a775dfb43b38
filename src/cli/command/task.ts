// Commands with flags of their own: `streamdir TOOL TASK --flag value`, or without a tool `streamdir TASK WORD --flag`.

import { parseArgs } from "node:util";
import { nearest } from "./nearest.js";
import { faultOfEncoding, parseDuration, parseSize, parseWhole, quoted } from "./value.js";
import type { Surroundings } from "./verb.js";

/** A flag of a task. */
export interface TaskFlag {
  /** Without its dashes. */
  readonly flag: string;
  /** One letter that stands for it behind a single dash. */
  readonly short?: string;
  /** `list` takes words between commas, several times too; `duration` is like `30d`, `bytes` like `1KiB`. */
  readonly kind: "text" | "duration" | "bytes" | "integer" | "flag" | "list";
  /** What stands for its value in the help; empty where it takes none. */
  readonly placeholder: string;
  readonly isRequired: boolean;
  /** The variable that also sets it; `null` where there is none. */
  readonly env: string | null;
  /** As people write it; absent where the help says it, or there is none. */
  readonly default?: string;
  readonly help: string;
}

/** What a task is about: a word that stands without a flag. */
export interface TaskWord {
  /** What stands for it in the help, like `NAME`. */
  readonly placeholder: string;
  readonly isRequired: boolean;
}

/** One thing that a tool does, or the command itself. */
export interface Task<Around extends Surroundings = Surroundings> {
  readonly name: string;
  /** What it does, for the help. */
  readonly summary: string;
  /** In their order; absent where it takes none. */
  readonly words?: readonly TaskWord[];
  readonly flags: readonly TaskFlag[];
  /** Whether what it works on is standard input. */
  readonly readsInput?: true;
  /** Resolves to the exit status. Rejects only on a fault of the program. */
  run(given: Given, surroundings: Around): Promise<number>;
}

/** A command with tasks. */
export interface Tool {
  readonly name: string;
  readonly summary: string;
  readonly tasks: readonly Task[];
}

/** The values of the flags that were given, by their names without dashes, and the words. */
export class Given {
  readonly #values: ReadonlyMap<string, readonly string[]>;
  readonly #words: readonly string[];
  readonly #variables: ReadonlyMap<string, string>;

  /** `variables` are those that set a flag, by its name. */
  constructor(
    values: ReadonlyMap<string, readonly string[]>,
    words: readonly string[] = [],
    variables: ReadonlyMap<string, string> = new Map(),
  ) {
    this.#values = values;
    this.#words = words;
    this.#variables = variables;
  }

  /** What a message calls a flag: the variable that set it, or the flag itself. */
  nameOf(flag: string): string {
    return this.#variables.get(flag) ?? `--${flag}`;
  }

  /** The word at a place, from 0; empty where there is none. */
  word(at: number): string {
    return this.#words[at] ?? "";
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

  /** The last value of a flag that is a whole number or a size; `null` when there is none. */
  number(flag: string): number | null {
    const text = this.text(flag);
    return text === null ? null : (parseWhole(text) ?? parseSize(text));
  }
}

/** What the words after the name of a tool ask for. `line` says what is wrong and what would be right. */
export type TaskCommand =
  | { readonly kind: "run"; readonly task: Task; readonly given: Given }
  | { readonly kind: "help"; readonly task: Task | null }
  | UsageError;

/** What the words after the name of a task without a tool ask for. */
export type LoneTaskCommand = { readonly kind: "run"; readonly given: Given } | { readonly kind: "help" } | UsageError;

interface UsageError {
  readonly kind: "usage-error";
  readonly line: string;
}

type Env = Readonly<Record<string, string | undefined>>;
type DescribedTask = Pick<Task, "name" | "flags" | "words" | "readsInput">;

/** What `args`, after the tool's name, and `env` ask for. A flag wins over its variable. */
export function parseTask(tool: Tool, args: readonly string[], env: Env): TaskCommand {
  const [name, ...rest] = args;
  const task = tool.tasks.find((known) => known.name === name) ?? null;
  if (asksForHelp(args)) return { kind: "help", task };
  if (task !== null) {
    const read = readTask(`${tool.name} ${task.name}`, task, rest, env);
    return read.kind === "run" ? { ...read, task } : read;
  }
  const names = tool.tasks.map((known) => known.name);
  if (name === undefined) return wrong(`streamdir ${tool.name} needs a command: ${names.join(", ")}`);
  const meant = nearest(name, names);
  const hint = meant === null ? `it has ${names.join(", ")}` : `did you mean ${meant}?`;
  return wrong(`streamdir ${tool.name} has no command ${quoted(name)}; ${hint}`);
}

/** What `args`, after the task's name, and `env` ask for. A flag wins over its variable. */
export function parseLoneTask(task: DescribedTask, args: readonly string[], env: Env): LoneTaskCommand {
  return asksForHelp(args) ? { kind: "help" } : readTask(task.name, task, args, env);
}

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end < 0 ? args.length : end).some((arg) => arg === "--help" || arg === "-h");
}

type ReadTask = { readonly kind: "run"; readonly given: Given } | UsageError;

function readTask(name: string, task: DescribedTask, args: readonly string[], env: Env): ReadTask {
  const values = new Map<string, readonly string[]>();
  const variables = new Map<string, string>();
  for (const { flag, env: variable } of task.flags) {
    const value = variable === null ? undefined : env[variable];
    if (variable === null || value === undefined || value === "") continue;
    values.set(flag, [value]);
    variables.set(flag, variable);
  }
  const called = `streamdir ${name}`;
  const line = readLine(called, task, args);
  if ("kind" in line) return line;
  for (const [flag, value] of line.given) {
    values.set(flag, value);
    variables.delete(flag);
  }
  const missing = task.flags.find(({ flag, isRequired }) => isRequired && !values.has(flag));
  if (missing !== undefined) return wrong(`${called} needs --${missing.flag} ${missing.placeholder}`);
  for (const flag of task.flags) {
    const fault = line.given.has(flag.flag) ? null : faultOfValue(flag, values.get(flag.flag)?.at(-1) ?? "-", true);
    if (fault !== null && values.has(flag.flag)) return wrong(`${flag.env ?? flag.flag} ${fault}`);
  }
  const lacking = task.words?.[line.words.length];
  if (lacking?.isRequired === true) return wrong(`${called} needs ${lacking.placeholder}`);
  return { kind: "run", given: new Given(values, line.words, variables) };
}

interface ReadLine {
  readonly given: ReadonlyMap<string, readonly string[]>;
  readonly words: readonly string[];
}

function readLine(called: string, task: DescribedTask, args: readonly string[]): ReadLine | UsageError {
  const given = new Map<string, string[]>();
  const words: string[] = [];
  const { words: known = [] } = task;
  let isBehindDashes = false;
  for (const token of tokensOf(task, args)) {
    if (token.kind === "option-terminator") {
      isBehindDashes = true;
      continue;
    }
    if (token.kind === "positional") {
      const word = known[words.length];
      if (word === undefined) {
        const isFlag = isBehindDashes && token.value.startsWith("-");
        const expected = isFlag ? "its flags stand before --" : `it ${expectedOf(called, task)}`;
        return wrong(`${called} takes no ${quoted(token.value)}; ${expected}`);
      }
      if (token.value === "") return wrong(`${word.placeholder} must not be empty`);
      const garbled = faultOfEncoding(token.value);
      if (garbled !== null) return wrong(`${word.placeholder} ${garbled}`);
      words.push(token.value);
      continue;
    }
    const { rawName } = token;
    const flag = task.flags.find((one) => rawName === `--${one.flag}` || rawName === `-${one.short}`);
    if (flag === undefined) return wrong(`unknown flag ${quoted(rawName)}; ${suggestion(called, task, token.name)}`);
    const fault = faultOfValue(flag, token.value, token.inlineValue === true);
    if (fault !== null) return wrong(`${rawName} ${fault}`);
    given.set(flag.flag, [...(given.get(flag.flag) ?? []), token.value ?? ""]);
  }
  return { given, words };
}

function tokensOf({ flags }: DescribedTask, args: readonly string[]) {
  const options = flags.map(({ flag, kind, short }) => {
    const type = kind === "flag" ? ("boolean" as const) : ("string" as const);
    return [flag, { type, ...(short === undefined ? {} : { short }) }] as const;
  });
  const parsed = parseArgs({
    args: [...args],
    options: Object.fromEntries(options),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  return parsed.tokens;
}

function expectedOf(called: string, { words = [], readsInput }: DescribedTask): string {
  const placeholders = words.map(({ placeholder }) => placeholder);
  if (readsInput === true) return `reads standard input: ${[called, ...placeholders].join(" ")} < FILE`;
  return placeholders.length === 0 ? "has flags only" : `has only ${placeholders.join(" ")}`;
}

function faultOfValue({ kind, placeholder }: TaskFlag, value: string | undefined, isInline: boolean): string | null {
  if (kind === "flag") return value === undefined ? null : "takes no value";
  // Another flag is no value, unless it is joined to this one by an equals sign; nor is one of stream offsets.
  if (value === undefined || value === "" || (!isInline && /^-(?!1$)/.test(value)))
    return `needs a value: ${placeholder}`;
  if (kind === "duration" && parseDuration(value) === null)
    return `must be a time like 30d or 1h, not ${quoted(value)}`;
  if (kind === "integer" && parseWhole(value) === null) return `must be a whole number, not ${quoted(value)}`;
  if (kind === "bytes" && parseSize(value) === null) return `must be a size like 64KiB, not ${quoted(value)}`;
  if (kind === "list" && value.split(",").some((word) => word.trim() === "")) return "has an empty word between commas";
  return kind === "list" ? faultOfEncoding(value) : null;
}

function suggestion(called: string, task: DescribedTask, written: string): string {
  const isCount = /^\d/.test(written) && task.flags.some(({ short }) => short === "n");
  if (isCount) return "write -n and a number";
  const meant = nearest(
    written,
    task.flags.map(({ flag }) => flag),
  );
  if (meant !== null) return `did you mean --${meant}?`;
  const [word] = task.words ?? [];
  const orWord = word === undefined ? "" : `; a ${word.placeholder} that begins with a dash stands behind --`;
  return `${called} --help lists them${orWord}`;
}

function wrong(line: string): UsageError {
  return { kind: "usage-error", line };
}
