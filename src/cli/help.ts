import { formatValue, OPTIONS } from "../options.js";
import type { OptionSpec } from "../options.js";
import { placeholderOf } from "./command/described.js";
import { DEFAULT_DIR, EXIT } from "./command/verb.js";
import type { Tool } from "./command/task.js";
import type { Verb } from "./command/verb.js";

type DescribedVerb = Pick<Verb, "name" | "summary" | "second" | "switches">;

/** What `--help` prints, at most 100 columns wide. The first verb is the one meant when none is named. */
export function helpText(
  verbs: readonly [DescribedVerb, ...DescribedVerb[]],
  tools: readonly Pick<Tool, "name" | "summary">[] = [],
  clientVerbs: readonly Pick<Tool, "name" | "summary">[] = [],
): string {
  const [{ name: implied }] = verbs;
  const specs: readonly OptionSpec[] = Object.values(OPTIONS);
  const groups = [...new Set(specs.map(({ group }) => group))];
  return [
    `Usage: streamdir [${verbs.map(({ name }) => name).join("|")}] [DIR] [flags]`,
    "",
    `DIR holds the streams; it is made if need be, and is ${DEFAULT_DIR} when it is left out. A single word that`,
    `is no directory yet takes the command: streamdir ${implied} DIR.`,
    "",
    `Commands (${implied} when none is named):`,
    ...verbs.flatMap(({ name, summary, second, switches = [] }) => [
      commandColumns(second === undefined ? name : `${name} DIR ${second}`, summary),
      ...switches.map(({ flag, value, help }) =>
        commandColumns(`  --${flag}${value === undefined ? "" : ` ${value}`}`, help),
      ),
    ]),
    ...tools.map(({ name, summary }) => commandColumns(name, summary)),
    ...(clientVerbs.length === 0 ? [] : ["", "Commands for a server that runs:"]),
    ...clientVerbs.map(({ name, summary }) => commandColumns(name, summary)),
    "",
    "streamdir COMMAND --help says more of each.",
    "",
    "Flags, each with the environment variable that also sets it; a flag wins:",
    ...groups.flatMap((group) => ["", `${group}:`, ...specs.filter((spec) => spec.group === group).flatMap(rowsOf)]),
    "",
    "Information:",
    columns("-h, --help", "print this text"),
    columns("--version", "print the version"),
    "",
    "A SIZE is written like 64MiB, 1.5KiB, 10MB or 4096; a TIME like 500ms, 1.5s, 2m or 1h.",
    `Exit status: ${EXIT.done} stopped, ${EXIT.unusable} directory or port unusable, ${EXIT.usage} wrong usage, ` +
      `${EXIT.crash} fault of the program,`,
    `${EXIT.fault} storage fault. Of the commands for a server: docs/cli.md.`,
    "",
  ].join("\n");
}

function rowsOf(spec: OptionSpec): string[] {
  return [columns(flagOf(spec), spec.help), columns("", `${spec.env}${defaultOf(spec)}`)];
}

function defaultOf(spec: OptionSpec): string {
  return spec.default === "" ? "" : `, default ${formatValue(spec, spec.default)}`;
}

function flagOf(spec: OptionSpec): string {
  if (spec.kind === "flag") return `--[no-]${spec.flag}`;
  return `--${spec.flag} ${placeholderOf(spec)}`;
}

/** Those of commands need less room. */
function commandColumns(left: string, right: string): string {
  return `  ${left.padEnd(24)}${right}`;
}

/** The second column begins after the longest flag. */
function columns(left: string, right: string): string {
  return `  ${left.padEnd(33)}${right}`;
}
