// Checks the values of options.

import { faultOfHosts } from "../net/host-name.js";
import { parseListen } from "../net/listen-address.js";
import { faultOfNetworks } from "../net/networks.js";
import { faultOfRate } from "../net/rate.js";
import { faultOfAddress } from "../net/storage-address.js";
import { formatValue, type OptionKind, type OptionSpec } from "./spec.js";

/**
 * What is wrong with `value` for the option `spec`, in words that say what would be right; `null` when it is fine.
 * `off` is how a bound that is none is written.
 */
export function faultOf(spec: OptionSpec, value: unknown, off = "off"): string | null {
  return FAULTS[spec.kind](value, spec, off);
}

/** What is wrong with a value of each kind. */
const FAULTS: Readonly<Record<OptionKind, (value: unknown, spec: OptionSpec, off: string) => string | null>> = {
  flag: faultOfFlag,
  text: (value: unknown) => (typeof value === "string" && value !== "" ? null : "must be a text that is not empty"),
  file: (value: unknown) => (typeof value === "string" ? null : "must be a path"),
  path: faultOfPrefix,
  origins: faultOfOrigins,
  hosts: faultOfHosts,
  networks: faultOfNetworks,
  listen: faultOfListen,
  rate: faultOfRate,
  storage: faultOfStorage,
  mode: faultOfMode,
  choice: (value: unknown, { choices = [] }: OptionSpec) => faultOfChoice(choices, value),
  integer: faultOfNumber,
  bytes: faultOfNumber,
  duration: faultOfNumber,
};

function faultOfFlag(value: unknown, { undecided }: OptionSpec): string | null {
  if (typeof value === "boolean" || (undecided !== undefined && value === undecided)) return null;
  return undecided === undefined ? "must be true or false" : `must be true, false or ${undecided}`;
}

function faultOfChoice(choices: readonly string[], value: unknown): string | null {
  if (typeof value === "string" && choices.includes(value)) return null;
  return `must be ${choices.slice(0, -1).join(", ")} or ${choices.at(-1) ?? ""}`;
}

function faultOfNumber(value: unknown, spec: OptionSpec, off: string): string | null {
  const min = spec.min ?? 0;
  const max = spec.max ?? Number.MAX_SAFE_INTEGER;
  if (value === Infinity && spec.canBeOff === true) return null;
  const fits = typeof value === "number" && value >= min && value <= max;
  if (fits && (spec.kind === "duration" || Number.isInteger(value))) return null;
  const orOff = spec.canBeOff === true ? `, or ${off}` : "";
  return `must be from ${formatValue(spec, min)} to ${formatValue(spec, max)}${orOff}`;
}

/** What is wrong with a prefix, or `null`: it begins and ends with `/` and has only characters that a URL path has. */
export function faultOfPrefix(prefix: unknown): string | null {
  // A client resolves the segments . and .. before it asks, so no request could ever reach them.
  const plain = /^\/(?:(?!\.{1,2}\/)[A-Za-z0-9._~!$&'()*+,;=:@-]+\/)*$/;
  if (typeof prefix === "string" && plain.test(prefix)) return null;
  return "must begin and end with / and hold plain path characters, like /v1/stream/";
}

function faultOfOrigins(value: unknown): string | null {
  // A browser sends the origin without a path: one with a trailing slash would never match.
  const origin = /^[a-z][a-z0-9+.-]*:\/\/[A-Za-z0-9._~:[\]-]+$/;
  if (value === "*" || value === "auto") return null;
  if (typeof value === "string" && value.split(",").every((part) => origin.test(part))) return null;
  return "must be *, auto, or origins like https://example.com, separated by commas";
}

function faultOfListen(value: unknown): string | null {
  if (typeof value === "string" && (value === "" || parseListen(value) !== null)) return null;
  return "must be addresses like 127.0.0.1:4437, [::1]:4437, unix:/run/streamdir.sock or fd:3, separated by commas";
}

function faultOfStorage(value: unknown): string | null {
  return faultOfAddress(typeof value === "string" ? value : "");
}

function faultOfMode(value: unknown): string | null {
  return typeof value === "string" && /^0?[0-7]{3}$/.test(value) ? null : "must be permissions in octal, like 660";
}
