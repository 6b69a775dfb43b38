// Reads and checks the value of one option, as text.

import { oneLine } from "../../ops/log.js";
import { faultOf, formatValue, UNITS } from "../../options.js";
import type { OptionSpec, OptionValue } from "../../options.js";

/** A value, or what is wrong with it: words that follow the name of its flag or variable. */
export type ParsedValue =
  { readonly kind: "value"; readonly value: OptionValue } | { readonly kind: "fault"; readonly words: string };

const FLAG_TEXTS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

/** The longest piece of input that a refusal repeats. */
const MAX_QUOTED_CHARS = 60;

/** The value that `text`, from the command line or the environment, has for the option `spec`. */
export function parseValue(spec: OptionSpec, text: string): ParsedValue {
  const value = read(spec, text);
  const fault = faultOf(spec, value);
  if (fault === null && value !== undefined) return { kind: "value", value };
  const hint = value === undefined ? hintFor(spec) : "";
  // An address may have a password.
  const given = spec.kind === "storage" ? "" : `, not ${quoted(text)}`;
  return { kind: "fault", words: `${fault ?? "can't be read"}${hint}${given}` };
}

/** `text` as a refusal repeats it: in quotes, on one line, cut when it is long. */
export function quoted(text: string): string {
  const shown = text.length > MAX_QUOTED_CHARS ? `${text.slice(0, MAX_QUOTED_CHARS)}...` : text;
  return oneLine(JSON.stringify(shown));
}

/**
 * What is wrong with a name or a pattern. Node puts U+FFFD in the place of bytes that are no UTF-8: two names would
 * become one.
 */
export function faultOfEncoding(text: string): string | null {
  return text.includes("\ufffd") ? `${quoted(text)} is not valid UTF-8, or has U+FFFD` : null;
}

/** Milliseconds of a duration with its unit, like `30d`: 1 or more; `null` for anything else. */
export function parseDuration(text: string): number | null {
  const ms = readQuantity(UNITS.duration, text, undefined);
  return ms !== undefined && ms >= 1 && Number.isSafeInteger(ms) ? ms : null;
}

/** Bytes of a size like `64KiB` or `4096`: 1 or more; `null` for anything else. */
export function parseSize(text: string): number | null {
  const bytes = readQuantity(UNITS.bytes, text, 1);
  return bytes !== undefined && bytes >= 1 && Number.isSafeInteger(bytes) ? bytes : null;
}

/** A whole number without a sign; `null` for anything else. */
export function parseWhole(text: string): number | null {
  return /^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : null;
}

/** `undefined` when `text` isn't written as the kind of the option asks; bounds are not checked. */
function read(spec: OptionSpec, text: string): OptionValue | undefined {
  if (spec.canBeOff === true && text === "off") return Infinity;
  switch (spec.kind) {
    case "flag":
      return text === spec.undecided ? text : FLAG_TEXTS.get(text);
    case "integer":
      return /^\d+$/.test(text) ? Number(text) : undefined;
    case "bytes":
      return readQuantity(UNITS.bytes, text, 1);
    case "duration":
      // Seconds to some, milliseconds to others: a duration without its unit is never guessed at. None is none in all
      // units.
      return text === "0" && spec.min === 0 ? 0 : readQuantity(UNITS.duration, text, undefined);
    default:
      return text;
  }
}

function readQuantity(
  units: Readonly<Record<string, number>>,
  text: string,
  sizeWithoutUnit: number | undefined,
): number | undefined {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/.exec(text) ?? [];
  const size = unit === "" ? sizeWithoutUnit : unitSize(units, unit);
  // 1.1MiB is no whole number of bytes; the nearest one is what its writer means.
  return amount === undefined || size === undefined ? undefined : Math.round(Number(amount) * size);
}

function unitSize(units: Readonly<Record<string, number>>, unit: string): number | undefined {
  return Object.entries(units).find(([name]) => name.toLowerCase() === unit.toLowerCase())?.[1];
}

function hintFor(spec: OptionSpec): string {
  if (spec.kind === "bytes") return `, written like ${exampleOf(spec)}`;
  if (spec.kind === "duration") return `, with its unit like ${exampleOf(spec)} or 500ms`;
  return "";
}

/** An example value as people write it: the default, or the minimum where the default is not a number. */
function exampleOf(spec: OptionSpec): string {
  return formatValue(spec, spec.default === Infinity ? (spec.min ?? 0) : spec.default);
}
