import { formatValue, OPTIONS } from "../options.js";
import type { OptionKind, OptionSpec } from "../options.js";
import { DEFAULT_DIR, EXIT } from "./command/verb.js";
import type { Tool } from "./command/task.js";
import type { Verb } from "./command/verb.js";

const PLACEHOLDERS: Readonly<Record<OptionKind, string>> = {
  text: "TEXT",
  file: "FILE",
  hosts: "HOSTS",
  networks: "NETWORKS",
  listen: "ADDRESSES",
  rate: "RATE",
  mode: "MODE",
  path: "PATH",
  origins: "ORIGINS",
  integer: "N",
  bytes: "SIZE",
  duration: "TIME",
  choice: "CHOICE",
  flag: "",
};

type DescribedVerb = Pick<Verb, "name" | "summary" | "second" | "switches">;

/** What `--help` prints, at most 100 columns wide. The first verb is the one meant when none is named. */
export function helpText(
  verbs: readonly [DescribedVerb, ...DescribedVerb[]],
  tools: readonly Pick<Tool, "name" | "summary">[] = [],
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
      columns(second === undefined ? name : `${name} DIR ${second}`, summary),
      ...switches.map(({ flag, value, help }) => columns(`  --${flag}${value === undefined ? "" : ` ${value}`}`, help)),
    ]),
    ...tools.flatMap(({ name, summary }) => [columns(name, summary), columns("", `streamdir ${name} --help says how`)]),
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
    `${EXIT.fault} storage fault.`,
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
  return `--${spec.flag} ${spec.placeholder ?? spec.choices?.join("|") ?? PLACEHOLDERS[spec.kind]}`;
}

/** The second column begins after the longest flag. */
function columns(left: string, right: string): string {
  return `  ${left.padEnd(33)}${right}`;
}
