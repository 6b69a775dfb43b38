// What the rows of the table of options say.

/**
 * How a value is written: `bytes` like `64MiB`, `duration` (kept in milliseconds) like `1.5s`, `path` a prefix of URL
 * paths, `origins` what a browser may call from, `file` a path or nothing, `storage` where streams are kept, `mode`
 * the permissions of a file in octal.
 */
export type OptionKind =
  | "text"
  | "file"
  | "path"
  | "origins"
  | "hosts"
  | "networks"
  | "listen"
  | "rate"
  | "storage"
  | "mode"
  | "integer"
  | "bytes"
  | "duration"
  | "choice"
  | "flag";

/** What the value of an option may be. */
export type OptionValue = string | number | boolean;

/** What a flag may have by default that is neither on nor off. */
export type Undecided = "loopback";

/** One row of the table. Bounds are inclusive, in the unit the value is kept in. */
export interface OptionSpec {
  readonly flag: string;
  readonly env: string;
  readonly kind: OptionKind;
  readonly default: OptionValue;
  readonly min?: number;
  readonly max?: number;
  /** Whether it may be `Infinity`, written `off`. */
  readonly canBeOff?: true;
  readonly choices?: readonly string[];
  /** The value of a flag that nobody has set, where that is neither on nor off. */
  readonly undecided?: Undecided;
  readonly placeholder?: string;
  /** The heading of `--help` under which the option stands; rows of one group stand together. */
  readonly group: string;
  readonly help: string;
}

/** 1024 bytes. */
export const KiB = 1024;
/** 1024 KiB. */
export const MiB = 1024 * KiB;
/** 1024 MiB. */
export const GiB = 1024 * MiB;
/** 1000 milliseconds. */
export const SECOND = 1000;
/** 60 seconds. */
export const MINUTE = 60 * SECOND;
/** 60 minutes. */
export const HOUR = 60 * MINUTE;
/** 24 hours. */
export const DAY = 24 * HOUR;

/** The units of sizes in bytes and of durations in milliseconds, largest first. */
export const UNITS = {
  bytes: { GiB, GB: 1e9, MiB, MB: 1e6, KiB, KB: 1e3, B: 1 },
  duration: { d: DAY, h: HOUR, m: MINUTE, s: SECOND, ms: 1 },
} as const satisfies Partial<Record<OptionKind, Readonly<Record<string, number>>>>;

/** `value` as people write it for `spec`: 67108864 bytes as `64MiB`, 90000 milliseconds as `90s`. */
export function formatValue(spec: OptionSpec, value: OptionValue): string {
  if (value === Infinity) return "off";
  if (typeof value !== "number" || (spec.kind !== "bytes" && spec.kind !== "duration")) return String(value);
  const units = Object.entries(UNITS[spec.kind]);
  const [unit, size] = units.find(([, size]) => value >= size && value % size === 0) ?? units.at(-1) ?? ["", 1];
  return `${value / size}${unit}`;
}
