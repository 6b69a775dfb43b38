// All that the command can do, as its help, its completions and its manual page show it.

import { formatValue, OPTIONS, type OptionKind, type OptionSpec } from "../../options.js";
import type { TaskFlag, TaskWord, Tool } from "./task.js";
import type { DescribedTask } from "./task-help.js";
import type { Verb } from "./verb.js";

/** A word behind `streamdir`: a task, or with `tasks` of its own a tool. */
export interface DescribedCommand extends DescribedTask {
  readonly words: readonly TaskWord[];
  /** Empty for all but tools. */
  readonly tasks: readonly DescribedTask[];
}

type DescribedVerb = Omit<Verb, "run">;

const PLACEHOLDERS: Readonly<Record<OptionKind, string>> = {
  text: "TEXT",
  file: "FILE",
  hosts: "HOSTS",
  networks: "NETWORKS",
  listen: "ADDRESSES",
  rate: "RATE",
  storage: "WHERE",
  mode: "MODE",
  path: "PATH",
  origins: "ORIGINS",
  integer: "N",
  bytes: "SIZE",
  duration: "TIME",
  choice: "CHOICE",
  flag: "",
};

/** What stands for the value of an option; empty where it takes none. */
export function placeholderOf(spec: OptionSpec): string {
  return spec.placeholder ?? spec.choices?.join("|") ?? PLACEHOLDERS[spec.kind];
}

/** A verb on a directory, with its switches; with the options of the server where it takes them. */
export function describedVerb({ name, summary, second, switches = [], takesOptions }: DescribedVerb): DescribedCommand {
  const isPair = second !== undefined;
  const words = [{ placeholder: "DIR", isRequired: isPair }];
  const specs: readonly OptionSpec[] = takesOptions === true ? Object.values(OPTIONS) : [];
  const own = switches.map(({ flag, value = "", help }) => flagOf(flag, value, help));
  return {
    name,
    summary,
    words: isPair ? [...words, { placeholder: second, isRequired: true }] : words,
    flags: [...own, ...specs.flatMap(flagsOfOption)],
    tasks: [],
  };
}

/** A tool with its tasks. */
export function describedTool({ name, summary, tasks }: Tool): DescribedCommand {
  return { name, summary, words: [], flags: [], tasks };
}

/** A task without a tool. */
export function describedTask({ name, summary, words = [], flags }: DescribedTask): DescribedCommand {
  return { name, summary, words, flags, tasks: [] };
}

function flagsOfOption(spec: OptionSpec): TaskFlag[] {
  const flag = {
    ...flagOf(spec.flag, spec.choices?.join("|") ?? placeholderOf(spec), spec.help),
    env: spec.env,
    ...(spec.default === "" ? {} : { default: formatValue(spec, spec.default) }),
  };
  return spec.kind === "flag" ? [flag, flagOf(`no-${spec.flag}`, "", `also where ${spec.env} says otherwise`)] : [flag];
}

function flagOf(flag: string, placeholder: string, help: string): TaskFlag {
  return { flag, kind: placeholder === "" ? "flag" : "text", placeholder, isRequired: false, env: null, help };
}
