// The help of tools, from their tables.

import { usageOf } from "./arguments.js";
import type { Tool, ToolCommand, ToolFlag } from "./tool.js";

/** What `streamdir TOOL --help` prints, at most 100 columns wide. */
export function toolHelp({ name, summary, commands }: Tool): string {
  return [
    `Usage: streamdir ${name} ${commands.map((command) => command.name.slice(name.length + 1)).join("|")} [flags]`,
    "",
    summary,
    "",
    ...commands.map((command) => `  ${command.name.padEnd(24)}${command.summary}`),
    "",
    `streamdir ${name} COMMAND --help prints the flags of a command.`,
    "",
  ].join("\n");
}

/** What `streamdir TOOL COMMAND --help` prints. */
export function commandHelp({ name, summary, details = [], flags }: ToolCommand): string {
  const needed = flags.filter(({ isRequired }) => isRequired).map(usageOf);
  return [
    `Usage: ${["streamdir", name, ...needed, "[flags]"].join(" ")}`,
    "",
    `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`,
    ...details,
    "",
    ...flags.map(rowOf),
    "",
  ].join("\n");
}

function rowOf(flag: ToolFlag): string {
  const env = flag.env === undefined ? "" : ` (${flag.env})`;
  return `  ${usageOf(flag).padEnd(24)}${flag.help}${env}`;
}
