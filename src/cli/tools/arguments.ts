// Reads the arguments of a tool.

import { parseArgs } from "node:util";
import type { OptionSpec } from "../../options.js";
import { nearest } from "../terms/nearest.js";
import { parseValue, quoted } from "../terms/value.js";
import { Given, type Tool, type ToolCommand, type ToolFlag } from "./tool.js";

/** What the arguments of a tool ask for. `line` says in one line what is wrong and what would be right. */
export type ToolCall =
  | { readonly kind: "run"; readonly command: ToolCommand; readonly given: Given }
  /** `command` is `null` where the help of the whole tool is asked for. */
  | { readonly kind: "help"; readonly command: ToolCommand | null }
  | { readonly kind: "usage-error"; readonly line: string };

/** What is accepted of numbers; the tool's command knows closer bounds. */
const NUMBER = { flag: "", env: "", default: 1, min: 0, group: "", help: "" } as const;

/** Reads what follows the name of a tool. A flag wins over its variable. */
export function readToolCall(
  tool: Tool,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ToolCall {
  const [word] = args;
  const command = tool.commands.find(({ name }) => name === `${tool.name} ${word ?? ""}`);
  const asksForHelp = args.includes("--help") || args.includes("-h");
  if (command === undefined) return asksForHelp ? { kind: "help", command: null } : unknownCommand(tool, word);
  return asksForHelp ? { kind: "help", command } : readFlags(command, args.slice(1), env);
}

function unknownCommand(tool: Tool, word: string | undefined): ToolCall {
  const names = tool.commands.map(({ name }) => name.slice(tool.name.length + 1));
  const meant = word === undefined ? null : nearest(word, names);
  if (meant !== null)
    return wrong(`unknown command ${quoted(word ?? "")}; did you mean streamdir ${tool.name} ${meant}?`);
  return wrong(`streamdir ${tool.name} is followed by ${names.slice(0, -1).join(", ")} or ${names.at(-1) ?? ""}`);
}

function readFlags(
  command: ToolCommand,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ToolCall {
  const { tokens } = parseArgs({ args: [...args], options: optionsOf(command), strict: false, tokens: true });
  const texts = new Map<string, string>();
  const switches = new Set<string>();
  for (const token of tokens) {
    if (token.kind === "positional") return wrong(`streamdir ${command.name} takes no ${quoted(token.value)}`);
    if (token.kind === "option-terminator") continue;
    const flag = command.flags.find((known) => known.flag === token.name);
    if (flag === undefined) return wrong(unknownFlag(command, token.rawName));
    if (flag.kind === "switch") {
      if (token.value !== undefined) return wrong(`${token.rawName} takes no value`);
      switches.add(flag.flag);
    } else if (token.value === undefined || token.value === "") {
      return wrong(`${token.rawName} needs a value, like ${token.rawName}=${flag.placeholder ?? "TEXT"}`);
    } else texts.set(flag.flag, token.value);
  }
  return complete(command, texts, switches, env);
}

function optionsOf({ flags }: ToolCommand): Record<string, { type: "string" | "boolean" }> {
  return Object.fromEntries(
    flags.map(({ flag, kind }) => [flag, { type: kind === "switch" ? ("boolean" as const) : ("string" as const) }]),
  );
}

function complete(
  command: ToolCommand,
  texts: Map<string, string>,
  switches: ReadonlySet<string>,
  env: Readonly<Record<string, string | undefined>>,
): ToolCall {
  const numbers = new Map<string, number>();
  for (const flag of command.flags) {
    const fromEnv = flag.env === undefined ? undefined : env[flag.env];
    if (fromEnv !== undefined && fromEnv !== "" && !texts.has(flag.flag)) texts.set(flag.flag, fromEnv);
    const text = texts.get(flag.flag);
    if (text === undefined && flag.isRequired) return wrong(`streamdir ${command.name} needs ${usageOf(flag)}`);
    if (text === undefined || (flag.kind !== "duration" && flag.kind !== "integer")) continue;
    const parsed = parseValue(numberSpec(flag.kind), text);
    if (parsed.kind === "fault") return wrong(`--${flag.flag} ${parsed.words}`);
    numbers.set(flag.flag, Number(parsed.value));
  }
  return { kind: "run", command, given: new Given(texts, numbers, switches) };
}

function numberSpec(kind: "duration" | "integer"): OptionSpec {
  return kind === "duration"
    ? { ...NUMBER, kind, default: 3_600_000, min: 1, max: 36_500 * 24 * 3_600_000 }
    : { ...NUMBER, kind, max: Number.MAX_SAFE_INTEGER };
}

function unknownFlag({ name, flags }: ToolCommand, written: string): string {
  const meant = nearest(
    written.replace(/^-+/, ""),
    flags.map(({ flag }) => flag),
  );
  const hint = meant === null ? `streamdir ${name} --help lists them` : `did you mean --${meant}?`;
  return `unknown flag ${quoted(written)}; ${hint}`;
}

/** A flag as the help and a refusal write it. */
export function usageOf({ flag, kind, placeholder }: ToolFlag): string {
  return kind === "switch" ? `--${flag}` : `--${flag} ${placeholder ?? "TEXT"}`;
}

function wrong(line: string): ToolCall {
  return { kind: "usage-error", line };
}
