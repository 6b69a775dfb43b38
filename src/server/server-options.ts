// What a server is made of: the options of `createServer`, checked.

import { wholePath } from "../http/listen/plan.js";
import type { Clock } from "../ops/clock.js";
import type { LineOutput } from "../ops/lines/line-queue.js";
import type { Log } from "../ops/log.js";
import { defaultSettings, faultOf, OPTIONS, type OptionName, type Settings } from "../options.js";
import { StartError } from "./start-error.js";

/** Settings as callers give them: what is left out, or `undefined`, has its default. */
type GivenSettings = { readonly [N in keyof Settings]?: Settings[N] | undefined };

/** What a server is made of. */
export interface ServerOptions extends GivenSettings {
  /** The data directory; made when it does not exist. Needed, unless `storage` says that there is none. */
  readonly dir?: string | undefined;
  /** Removes the lock of a process that can't be seen from here. Set it only if that process has certainly stopped. */
  readonly forceUnlock?: boolean | undefined;
  /** The server's log; standard error when absent. */
  readonly log?: Log | undefined;
  /** The system's when absent. A stop waits by it as well: its timers must go on. */
  readonly clock?: Clock | undefined;
  /** Where `accessLog` writes its lines; standard output when absent. */
  readonly accessOutput?: LineOutput | undefined;
  /**
   * Called when the disk failed: no write is accepted any more, and the process should be restarted. When absent the
   * fault is only logged.
   */
  readonly onFault?: ((error: Error) => void) | undefined;
}

/** What is wrong with the options that are not settings; `null` if nothing is. */
const PART_FAULTS: Readonly<Record<Exclude<keyof ServerOptions, OptionName>, (value: unknown) => string | null>> = {
  dir: (value) => (value === undefined || (typeof value === "string" && value !== "") ? null : "must be a path"),
  forceUnlock: (value) => (value === undefined || typeof value === "boolean" ? null : "must be true or false"),
  log: (value) => faultOfMethods(value, ["debug", "info", "warn", "error"]),
  clock: (value) => faultOfMethods(value, ["nowMs", "after"]),
  accessOutput: (value) => faultOfMethods(value, ["write"]),
  onFault: (value) => (value === undefined || typeof value === "function" ? null : "must be a function"),
};

function faultOfMethods(value: unknown, methods: readonly string[]): string | null {
  if (value === undefined) return null;
  const isObject = typeof value === "object" && value !== null;
  const lacking = isObject ? methods.find((method) => typeof Reflect.get(value, method) !== "function") : undefined;
  if (isObject && lacking === undefined) return null;
  const why = lacking === undefined ? "" : `: ${lacking} is none`;
  const list = methods.length === 1 ? "method" : `methods ${methods.slice(0, -1).join(", ")} and`;
  return `must have the ${list} ${methods.at(-1)}${why}`;
}

/**
 * The options as they are now in an object of their own: getters and prototypes as well, so that what a class of the
 * caller's has is not left out. Throws {@link StartError} for a name that is none; a class may have others beside.
 */
export function ownOptions(options: ServerOptions): ServerOptions {
  // Callers in JavaScript have no types.
  const given: unknown = options;
  if (typeof given !== "object" || given === null)
    throw invalidOption("the first argument", "must be an object with options", given);
  const isUnknown = (name: string): boolean => !Object.hasOwn(OPTIONS, name) && !Object.hasOwn(PART_FAULTS, name);
  const unknown =
    Object.keys(given).find(isUnknown) ?? inheritedBy(given).find((name) => isUnknown(name) && suggestion(name) !== "");
  if (unknown !== undefined)
    throw new StartError(
      "invalid-option",
      `Cannot start: there is no option ${JSON.stringify(unknown)}${suggestion(unknown)}`,
    );
  const names = [...Object.keys(PART_FAULTS), ...Object.keys(OPTIONS)].filter((name) => name in given);
  return Object.fromEntries(names.map((name) => [name, valueOf(given, name)]));
}

/** What an object has of its prototypes, but for what all have. */
function inheritedBy(given: object): readonly string[] {
  const names: string[] = [];
  for (let at = Reflect.getPrototypeOf(given); at !== null && at !== Object.prototype; at = Reflect.getPrototypeOf(at))
    names.push(...Object.getOwnPropertyNames(at));
  return names;
}

/** A method of the caller's may need its object. */
function valueOf(given: object, name: string): unknown {
  const value: unknown = Reflect.get(given, name);
  return typeof value === "function" ? value.bind(given) : value;
}

/**
 * All settings of a server, those that are left out with their defaults, paths of files whole; `options` as
 * {@link ownOptions} has them. Throws {@link StartError}.
 */
export function settingsOf(options: ServerOptions): Settings {
  for (const [name, faultOfPart] of Object.entries(PART_FAULTS)) {
    const value: unknown = options[name as keyof ServerOptions]; // the names of PART_FAULTS are some of them
    const fault = faultOfPart(value);
    if (fault !== null) throw invalidOption(name, fault, value);
  }
  const set = Object.entries(options).filter(([name, value]) => Object.hasOwn(OPTIONS, name) && value !== undefined);
  const settings = { ...defaultSettings(), ...Object.fromEntries(set) };
  for (const [name, spec] of Object.entries(OPTIONS)) {
    const value: unknown = settings[name as OptionName]; // the names of OPTIONS are all there are
    const fault = faultOf(spec, value, String(Infinity));
    // An address of a cluster may have a password in it.
    if (fault !== null && spec.kind === "storage")
      throw new StartError("invalid-option", `Cannot start: ${name} ${fault}`);
    if (fault !== null) throw invalidOption(name, fault, value);
  }
  const conflict = conflictWithStorage(settings, options.dir);
  if (conflict !== null) throw new StartError("invalid-option", `Cannot start: ${conflict}`);
  return withWholePaths(settings);
}

/** `settings` whose paths of files are the same from every working directory, each made by `whole`. */
export function withWholePaths(settings: Settings, whole = wholePath): Settings {
  const names = Object.keys(OPTIONS) as OptionName[]; // the names of OPTIONS are all there are
  const files = names.filter((name) => OPTIONS[name].kind === "file" && settings[name] !== "");
  return { ...settings, ...Object.fromEntries(files.map((name) => [name, whole(String(settings[name]))])) };
}

/** What only a directory has, and what only a cluster has. */
const OF_DIRECTORIES = ["fsync", "segmentBytes", "journalBytes", "journalBypassBytes"] as const;
const OF_CLUSTERS = ["natsCreds", "storageTimeoutMs"] as const;

/** Why options, and a directory, can't stand together with where streams are kept; `null` where they can. */
export function conflictWithStorage(settings: Settings, dir: string | undefined): string | null {
  const isFile = settings.storage === "file";
  if (isFile && dir === undefined) return "dir must be a path, current value is undefined";
  if (!isFile && dir !== undefined) return "with --storage there is no directory: streams are kept in the cluster";
  const strange = (isFile ? OF_CLUSTERS : OF_DIRECTORIES).find((name) => settings[name] !== OPTIONS[name].default);
  if (strange === undefined) return null;
  return `--${OPTIONS[strange].flag} has no meaning ${isFile ? "without" : "with"} --storage nats://`;
}

/** A hint for those who write an option as its flag on the command line. */
function suggestion(unknown: string): string {
  const bare = (name: string): string => name.replace(/[^A-Za-z]/g, "").toLowerCase();
  const meant = Object.entries(OPTIONS).find(
    ([name, { flag }]) => bare(unknown) === bare(flag) || bare(unknown) === bare(name),
  );
  return meant === undefined ? "" : `; did you mean ${meant[0]}?`;
}

function invalidOption(name: string, fault: string, value: unknown): StartError {
  return new StartError("invalid-option", `Cannot start: ${name} ${fault}, current value is ${shown(value)}`);
}

/** A value of any kind in one line. */
function shown(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "an array" : "an object";
    case "function":
      return "a function";
    default:
      return String(value);
  }
}
