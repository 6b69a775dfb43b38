// Reads the command line and the environment.

import { basename } from "node:path";
import { hasPassword } from "../net/storage-address.js";
import { defaultSettings, formatValue, OPTIONS } from "../options.js";
import type { OptionName, OptionSpec, OptionValue, Settings } from "../options.js";
import { nearest } from "./command/nearest.js";
import { parseValue, quoted, type ParsedValue } from "./command/value.js";
import { isOfService, refusalOfVariables, type Env } from "./command/variables.js";
import { DEFAULT_DIR, type Invocation, type Verb } from "./command/verb.js";

/** What a command line asks for. `line` says in one line what is wrong and what would be right. */
export type Command<V> = Run<V> | { readonly kind: "help" } | { readonly kind: "version" } | UsageError;

interface Run<V> extends Omit<Invocation, "version"> {
  readonly kind: "run";
  readonly verb: V;
  /**
   * The refusal to print if `dir` does not exist, because it may be meant as a command; `null` where it may be created.
   */
  readonly lineUnlessThere: string | null;
}

interface UsageError {
  readonly kind: "usage-error";
  readonly line: string;
}

/** Values by the names that options have in code. */
type Values = { [N in OptionName]?: OptionValue };

interface Flag {
  readonly name: OptionName;
  readonly spec: OptionSpec;
  /** It is the `--no-` form. */
  readonly negates: boolean;
}

/**
 * Words that are, or may become, verbs: never taken for a directory by mistake, even if this version does not have
 * them.
 */
const RESERVED_WORDS: ReadonlyMap<string, string> = new Map([
  ["help", "write streamdir --help"],
  ["version", "write streamdir --version"],
]);

// Object.entries forgets that its keys are the names of the table.
const ROWS = Object.entries(OPTIONS) as [OptionName, OptionSpec][];
const FLAGS: ReadonlyMap<string, Flag> = new Map(ROWS.flatMap(([name, spec]) => flagsOf(name, spec)));

/**
 * What `args` (without the program's name) and `env` ask for. A flag wins over its variable, and the last of equal
 * flags over the others; a wrong variable is refused even where a flag wins. The first of `verbs` is the one that is
 * meant when no verb is named. `tools` are read elsewhere: here they are only words that are no directory.
 */
export function parseCommand<V extends Pick<Verb, "name" | "second" | "switches" | "takesOptions">>(
  args: readonly string[],
  env: Env,
  verbs: readonly [V, ...V[]],
  tools: readonly { readonly name: string }[] = [],
): Command<V> {
  const informing = args.slice(0, args.includes("--") ? args.indexOf("--") : args.length);
  if (informing.includes("--help") || informing.includes("-h")) return { kind: "help" };
  if (informing.includes("--version")) return { kind: "version" };

  const named = verbs.find(({ name }) => name === args[0]);
  const verb = named ?? verbs[0];
  const known = new Map(verb.switches?.map(({ flag, value }) => [`--${flag}`, value ?? null]));
  const names = [...verbs, ...tools].map(({ name }) => name);
  const line = named === undefined ? readArguments(args, known, names) : readArguments(args.slice(1), known);
  if (line.kind === "usage-error") return line;
  const isPair = named?.second !== undefined;
  const refusal = isPair
    ? refusalOfPair(line.words, `${named.name} needs two directories: DIR ${named.second}`)
    : refusalOfWords(line.words, named === undefined ? names : null);
  if (refusal !== null) return refused(refusal);
  const fromEnv = readEnvironment(env);
  if (fromEnv.kind === "usage-error") return fromEnv;

  // Each value was checked against the row of its name.
  const settings = { ...defaultSettings(), ...fromEnv.values, ...line.values } as Settings;
  const { words, switches, given } = line;
  if (settings.storage !== OPTIONS.storage.default) {
    const called = line.values.storage === undefined ? OPTIONS.storage.env : `--${OPTIONS.storage.flag}`;
    if (verb.takesOptions !== true) return refused(`${verb.name} is for a directory, and ${called} names none`);
    if (words.length > 0)
      return refused(`with ${called} there is no directory to name, like ${quoted(words[0] ?? "")}`);
  }
  const [dir = DEFAULT_DIR] = words;
  const absence = named === undefined ? lineUnlessThere(dir, names) : null;
  return {
    kind: "run",
    verb,
    dir,
    settings,
    switches,
    lineUnlessThere: absence,
    ...(words.length === 0 ? ({ isDirImplied: true } as const) : {}),
    ...(isPair ? { second: line.words[1] ?? "" } : {}),
    ...(given.size > 0 ? { values: given } : {}),
  };
}

function refused(line: string): UsageError {
  return { kind: "usage-error", line };
}

function flagsOf(name: OptionName, spec: OptionSpec): [string, Flag][] {
  const flag: [string, Flag] = [`--${spec.flag}`, { name, spec, negates: false }];
  return spec.kind === "flag" ? [flag, [`--no-${spec.flag}`, { name, spec, negates: true }]] : [flag];
}

type Arguments =
  | {
      readonly kind: "read";
      readonly values: Values;
      readonly words: readonly string[];
      readonly switches: ReadonlySet<string>;
      readonly given: ReadonlyMap<string, readonly string[]>;
    }
  | UsageError;

/** The switches of a verb, with their dashes, and what stands for the value of each that has one. */
type KnownSwitches = ReadonlyMap<string, string | null>;

/** The first word may be meant as one of `commands`. */
function readArguments(args: readonly string[], known: KnownSwitches, commands: readonly string[] = []): Arguments {
  const values: Values = {};
  const words: string[] = [];
  const switches = new Set<string>();
  const given = new Map<string, readonly string[]>();
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === "--") words.push(...rest.splice(0));
    else if (!arg.startsWith("-")) words.push(arg);
    else if (known.get(arg) === null) switches.add(arg.slice(2));
    else {
      const [written = arg] = splitAtEquals(arg);
      const placeholder = known.get(written);
      const flag = FLAGS.get(written);
      let refusal: string | null;
      if (placeholder === null) refusal = `${written} takes no value`;
      else if (placeholder !== undefined) refusal = readSwitchValue(arg, placeholder, rest, given);
      else if (flag !== undefined) refusal = readFlag(arg, flag, rest, values);
      else refusal = refusalOfUnknown(written, [...FLAGS.keys(), ...known.keys()], nearest(words[0] ?? "", commands));
      if (refusal !== null) return refused(refusal);
    }
  }
  return { kind: "read", values, words, switches, given };
}

/** Adds the value of a switch that takes one to those `given` before; returns the refusal, or `null`. */
function readSwitchValue(
  arg: string,
  placeholder: string,
  rest: string[],
  given: Map<string, readonly string[]>,
): string | null {
  const [written = arg, inline] = splitAtEquals(arg);
  const value = inline ?? takeValue(rest);
  if (value === undefined || value === "") return `${written} needs a value, like ${written}=${placeholder}`;
  const flag = written.slice(2);
  given.set(flag, [...(given.get(flag) ?? []), value]);
  return null;
}

/** Puts the value of the flag `arg` into `values`, taking it from `rest` if need be; returns the refusal, or `null`. */
function readFlag(arg: string, { name, spec, negates }: Flag, rest: string[], values: Values): string | null {
  const [written = arg, inline] = splitAtEquals(arg);
  if (negates && inline !== undefined) return `${written} takes no value`;
  const [next = ""] = rest;
  // Else it would be taken for the directory, and made.
  if (spec.kind === "flag" && inline === undefined && parseValue(spec, next).kind === "value") {
    const meant = negates ? `${written} takes no value` : `write ${written}=${next}`;
    return `${quoted(next)} after ${written} is not its value: ${meant}; ${asDirectory(next)}`;
  }
  const text = inline ?? (spec.kind === "flag" ? String(!negates) : takeValue(rest));
  if (text === undefined) return `${written} needs a value, like ${written}=${formatValue(spec, spec.default)}`;
  const parsed = readValue(spec, text);
  if (parsed.kind === "fault") return `${written} ${parsed.words}`;
  if (spec.kind === "storage" && hasPassword(text))
    return `${written} must not have a password: every user of this machine sees arguments; set it in ${spec.env}`;
  const before = spec.kind === "listen" ? values[name] : undefined;
  // Each of several addresses may have a flag of its own.
  values[name] = before === undefined ? parsed.value : `${before},${parsed.value}`;
  return null;
}

function splitAtEquals(arg: string): string[] {
  const at = arg.indexOf("=");
  return at < 0 ? [arg] : [arg.slice(0, at), arg.slice(at + 1)];
}

/** The next argument, unless it is a flag; a negative number is not a flag. */
function takeValue(rest: string[]): string | undefined {
  const [next] = rest;
  return next !== undefined && /^(?!-)|^-\d/.test(next) ? rest.shift() : undefined;
}

/** `command` is what the word before the flag may be meant as: then that has the flag. */
function refusalOfUnknown(written: string, known: readonly string[], command: string | null): string {
  const unknown = `unknown flag ${quoted(written)}`;
  const bare = (flag: string): string => flag.replace(/^-+/, "");
  const meant = nearest(bare(written), known.map(bare));
  if (meant !== null) return `${unknown}; did you mean --${meant}?`;
  return `${unknown}; ${command === null ? "streamdir --help lists them" : `did you mean the command ${command}?`}`;
}

/** Why `words` are not one directory or none; `null` when they are. `verbNames` is `null` after a verb. */
function refusalOfWords(words: readonly string[], verbNames: readonly string[] | null): string | null {
  const [dir, second] = words;
  if (dir === undefined) return null;
  if (dir === "") return `the directory must not be empty; leave it out for ${DEFAULT_DIR}`;
  if (verbNames?.includes(dir) === true)
    return `a command stands before all flags: streamdir ${dir}; ${asDirectory(dir)}`;
  const reserved = verbNames === null ? undefined : RESERVED_WORDS.get(dir);
  if (reserved !== undefined) return `${quoted(dir)} is not a directory here: ${reserved}; ${asDirectory(dir)}`;
  if (second === undefined) return null;
  const meant = nearest(dir, verbNames ?? []);
  if (meant !== null) return `unknown command ${quoted(dir)}; did you mean streamdir ${meant}?`;
  const refusal = `only one directory can be named, not both ${quoted(dir)} and ${quoted(second)}`;
  const mayBeCommand = verbNames !== null && dir === basename(dir);
  return mayBeCommand ? `${quoted(dir)} is no command: see streamdir --help; and ${refusal}` : refusal;
}

/** Why `words` are not two directories; `null` when they are. `needed` says that they have to be. */
function refusalOfPair(words: readonly string[], needed: string): string | null {
  const [first, second, third] = words;
  if (first === undefined || second === undefined) return needed;
  if (first === "" || second === "") return "the directory must not be empty";
  return third === undefined ? null : `${needed}, and no third, ${quoted(third)}`;
}

/**
 * A single word may be a command of another version, or one with a typing mistake: it must not create a directory of
 * that name.
 */
function lineUnlessThere(dir: string, verbNames: readonly string[]): string | null {
  if (dir !== basename(dir)) return null;
  const meant = nearest(dir, verbNames);
  // Words that a shell or the command line would read as something else are not repeated.
  const written = /^[\w.][\w.+,:@%-]*$/.test(dir) ? dir : "DIR";
  const command = `streamdir ${verbNames[0]} ${written}`;
  const hint =
    meant === null
      ? `streamdir --help lists commands, ${command} makes the directory`
      : `did you mean streamdir ${meant}? Else write ${command} to make it`;
  return `${quoted(dir)} is neither a command nor a directory: ${hint}`;
}

function asDirectory(word: string): string {
  return `a directory of that name is ./${word}`;
}

function readEnvironment(env: Env): { readonly kind: "read"; readonly values: Values } | UsageError {
  const unknown = refusalOfVariables(env);
  if (unknown !== null) return refused(unknown);
  const values: Values = {};
  for (const [name, spec] of ROWS) {
    const text = env[spec.env];
    if (text === undefined || isOfService(spec.env, env)) continue;
    const parsed = readValue(spec, text);
    if (parsed.kind === "fault") return refused(`${spec.env} ${parsed.words}`);
    values[name] = parsed.value;
  }
  return { kind: "read", values };
}

/** Reads a value. An empty one, as a script's unset variable leaves it, must not turn off what it was to set. */
function readValue(spec: OptionSpec, text: string): ParsedValue {
  if (text === "" && spec.default === "")
    return { kind: "fault", words: "must not be empty; leave it out where there is none" };
  return parseValue(spec, text);
}
