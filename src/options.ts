/**
 * The one table of options: what each is called in code, on the command line and in the environment, its default,
 * its bounds and its help text. The server takes the values; the command line parses them.
 */

import { ACCESS_OPTIONS } from "./options/access.js";
import { BEHAVIOUR_OPTIONS } from "./options/behaviour.js";
import { LIMIT_OPTIONS } from "./options/limits.js";
import { LOG_OPTIONS } from "./options/log.js";
import { NETWORK_OPTIONS } from "./options/network.js";
import { STORAGE_OPTIONS } from "./options/storage.js";
import { TLS_OPTIONS } from "./options/tls.js";
import type { Settings } from "./options/settings.js";
import type { OptionSpec } from "./options/spec.js";

export { faultOf, faultOfPrefix } from "./options/faults.js";
export type { Settings } from "./options/settings.js";
export { formatValue, UNITS } from "./options/spec.js";
export type { OptionKind, OptionSpec, OptionValue } from "./options/spec.js";

/** Every option, in the order in which `--help` shows them. */
export const OPTIONS = {
  ...NETWORK_OPTIONS,
  ...ACCESS_OPTIONS,
  ...TLS_OPTIONS,
  ...BEHAVIOUR_OPTIONS,
  ...LIMIT_OPTIONS,
  ...STORAGE_OPTIONS,
  ...LOG_OPTIONS,
} as const satisfies Record<string, OptionSpec>;

/** What an option is called in code. */
export type OptionName = keyof typeof OPTIONS;
type Widened<S extends OptionSpec> = S extends { readonly choices: readonly (infer C)[] }
  ? C
  : S extends { readonly undecided: infer U }
    ? boolean | U
    : S["default"] extends string
      ? string
      : S["default"] extends number
        ? number
        : boolean;

type SettingsOfTable = { readonly [N in OptionName]: Widened<(typeof OPTIONS)[N]> };

/** The defaults of every option. */
export function defaultSettings(): Settings {
  const entries = Object.entries(OPTIONS).map(([name, spec]) => [name, spec.default]);
  return Object.fromEntries(entries) as SettingsOfTable; // fromEntries forgets the names of OPTIONS
}
