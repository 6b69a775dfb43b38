/**
 * The one table of options: what each is called in code, on the command line and in the environment, its default,
 * its bounds and its help text. The server takes the values; the command line parses them.
 */

/**
 * How a value is written: `bytes` like `64MiB`, `duration` (kept in milliseconds) like `1.5s`, `path` a prefix of URL
 * paths, `origins` what a browser may call from.
 */
export type OptionKind = "text" | "path" | "origins" | "integer" | "bytes" | "duration" | "choice" | "flag";

/** What the value of an option may be. */
export type OptionValue = string | number | boolean;

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
  readonly placeholder?: string;
  /** The heading of `--help` under which the option stands; rows of one group stand together. */
  readonly group: string;
  readonly help: string;
}

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The units of sizes in bytes and of durations in milliseconds, largest first. */
export const UNITS = {
  bytes: { GiB, GB: 1e9, MiB, MB: 1e6, KiB, KB: 1e3, B: 1 },
  duration: { d: DAY, h: HOUR, m: MINUTE, s: SECOND, ms: 1 },
} as const satisfies Partial<Record<OptionKind, Readonly<Record<string, number>>>>;

/** Every option, in the order in which `--help` shows them. */
export const OPTIONS = {
  host: {
    flag: "host",
    env: "STREAMDIR_HOST",
    kind: "text",
    default: "127.0.0.1",
    placeholder: "ADDRESS",
    group: "Network",
    help: "address to listen on",
  },
  port: {
    flag: "port",
    env: "STREAMDIR_PORT",
    kind: "integer",
    default: 4437,
    min: 0,
    max: 65535,
    group: "Network",
    help: "port to listen on; 0 picks a free one",
  },
  prefix: {
    flag: "prefix",
    env: "STREAMDIR_PREFIX",
    kind: "path",
    default: "/v1/stream/",
    placeholder: "PATH",
    group: "Network",
    help: "URL path in front of every stream's name; begins and ends with /",
  },
  corsOrigin: {
    flag: "cors-origin",
    env: "STREAMDIR_CORS_ORIGIN",
    kind: "origins",
    default: "*",
    placeholder: "ORIGINS",
    group: "Network",
    help: "origins that browsers may call from, separated by commas; * for any",
  },
  readOnly: {
    flag: "read-only",
    env: "STREAMDIR_READ_ONLY",
    kind: "flag",
    default: false,
    group: "Behaviour",
    help: "refuse PUT, POST and DELETE with 405",
  },
  ttl: {
    flag: "ttl",
    env: "STREAMDIR_TTL",
    kind: "choice",
    default: "sliding",
    choices: ["sliding", "fixed"],
    group: "Behaviour",
    help: "sliding: reads and appends restart a Stream-TTL; fixed: nothing does",
  },
  longPollTimeoutMs: {
    flag: "long-poll-timeout",
    env: "STREAMDIR_LONG_POLL_TIMEOUT",
    kind: "duration",
    default: 30 * SECOND,
    min: 1,
    max: HOUR,
    group: "Behaviour",
    help: "how long a long-poll waits for data",
  },
  sseLifetimeMs: {
    flag: "sse-lifetime",
    env: "STREAMDIR_SSE_LIFETIME",
    kind: "duration",
    default: 60 * SECOND,
    min: 1,
    max: DAY,
    group: "Behaviour",
    help: "about how long one SSE connection lasts",
  },
  sseHeartbeatMs: {
    flag: "sse-heartbeat",
    env: "STREAMDIR_SSE_HEARTBEAT",
    kind: "duration",
    default: 15 * SECOND,
    min: 10,
    max: HOUR,
    group: "Behaviour",
    help: "a comment goes to an SSE reader that was sent nothing for so long",
  },
  readMaxAgeMs: {
    flag: "read-max-age",
    env: "STREAMDIR_READ_MAX_AGE",
    kind: "duration",
    default: 60 * SECOND,
    min: 0,
    max: 365 * DAY,
    group: "Behaviour",
    help: "how long caches may show a read; at 0 they ask each time",
  },
  shutdownTimeoutMs: {
    flag: "shutdown-timeout",
    env: "STREAMDIR_SHUTDOWN_TIMEOUT",
    kind: "duration",
    default: 10 * SECOND,
    min: 0,
    max: HOUR,
    group: "Behaviour",
    help: "how long a stop waits for requests in flight",
  },
  maxAppendBytes: {
    flag: "max-append-bytes",
    env: "STREAMDIR_MAX_APPEND_BYTES",
    kind: "bytes",
    default: 16 * MiB,
    min: 1,
    max: GiB,
    group: "Limits",
    help: "largest request body; above it 413",
  },
  chunkBytes: {
    flag: "chunk-bytes",
    env: "STREAMDIR_CHUNK_BYTES",
    kind: "bytes",
    default: MiB,
    min: 1,
    max: 64 * MiB,
    group: "Limits",
    help: "most bytes in one read; a longer append or message is sent whole",
  },
  maxLoadedStreams: {
    flag: "max-loaded-streams",
    env: "STREAMDIR_MAX_LOADED_STREAMS",
    kind: "integer",
    default: 100_000,
    min: 1,
    max: 100_000_000,
    group: "Limits",
    help: "streams kept in memory; idle ones beyond it are forgotten",
  },
  maxLoadedProducers: {
    flag: "max-loaded-producers",
    env: "STREAMDIR_MAX_LOADED_PRODUCERS",
    kind: "integer",
    default: 1_000_000,
    min: 4096,
    max: 100_000_000,
    group: "Limits",
    help: "producers kept in memory; idle streams beyond it are forgotten",
  },
  tailCacheBytes: {
    flag: "tail-cache-bytes",
    env: "STREAMDIR_TAIL_CACHE_BYTES",
    kind: "bytes",
    default: 64 * MiB,
    min: 64 * KiB,
    max: 64 * GiB,
    group: "Limits",
    help: "memory for the newest bytes of all streams",
  },
  fsync: {
    flag: "fsync",
    env: "STREAMDIR_FSYNC",
    kind: "choice",
    default: "always",
    choices: ["always", "no"],
    group: "Storage",
    help: "always: a 2xx means on disk; no: the system decides when",
  },
  segmentBytes: {
    flag: "segment-bytes",
    env: "STREAMDIR_SEGMENT_BYTES",
    kind: "bytes",
    default: 64 * MiB,
    min: 4 * KiB,
    max: 4 * GiB,
    group: "Storage",
    help: "a stream's segment file ends at about this size",
  },
  journalBytes: {
    flag: "journal-bytes",
    env: "STREAMDIR_JOURNAL_BYTES",
    kind: "bytes",
    default: 64 * MiB,
    min: 64 * KiB,
    max: 4 * GiB,
    group: "Storage",
    help: "size of one journal file; a full one is checkpointed",
  },
  journalBypassBytes: {
    flag: "journal-bypass-bytes",
    env: "STREAMDIR_JOURNAL_BYPASS_BYTES",
    kind: "bytes",
    default: 256 * KiB,
    min: 4 * KiB,
    max: GiB,
    group: "Storage",
    help: "an append of this size goes to its segment first, past the journal",
  },
  retentionBytes: {
    flag: "retention-bytes",
    env: "STREAMDIR_RETENTION_BYTES",
    kind: "bytes",
    default: Infinity,
    min: KiB,
    max: 2 ** 53 - 1,
    canBeOff: true,
    group: "Storage",
    help: "keep about this much of each stream, the newest; off keeps all",
  },
  retentionAgeMs: {
    flag: "retention-age",
    env: "STREAMDIR_RETENTION_AGE",
    kind: "duration",
    default: Infinity,
    min: SECOND,
    max: 36_500 * DAY,
    canBeOff: true,
    group: "Storage",
    help: "keep bytes for about this long; off keeps them for ever",
  },
  logLevel: {
    flag: "log-level",
    env: "STREAMDIR_LOG_LEVEL",
    kind: "choice",
    default: "info",
    choices: ["debug", "info", "warn", "error", "silent"],
    placeholder: "LEVEL",
    group: "Log",
    help: "least severe message to log: debug, info, warn, error or silent",
  },
  logFormat: {
    flag: "log-format",
    env: "STREAMDIR_LOG_FORMAT",
    kind: "choice",
    default: "auto",
    choices: ["auto", "text", "json"],
    group: "Log",
    help: "auto is text on a terminal, json elsewhere",
  },
} as const satisfies Record<string, OptionSpec>;

/** What an option is called in code. */
export type OptionName = keyof typeof OPTIONS;
type Widened<S extends OptionSpec> = S extends { readonly choices: readonly (infer C)[] }
  ? C
  : S["default"] extends string
    ? string
    : S["default"] extends number
      ? number
      : boolean;

/** All settings of a server, complete. Sizes in bytes, durations in milliseconds. */
export type Settings = { readonly [N in OptionName]: Widened<(typeof OPTIONS)[N]> };

/** The defaults of every option. */
export function defaultSettings(): Settings {
  const entries = Object.entries(OPTIONS).map(([name, spec]) => [name, spec.default]);
  return Object.fromEntries(entries) as Settings; // fromEntries forgets the names of OPTIONS
}

/** `value` as people write it for `spec`: 67108864 bytes as `64MiB`, 90000 milliseconds as `90s`. */
export function formatValue(spec: OptionSpec, value: OptionValue): string {
  if (value === Infinity) return "off";
  if (typeof value !== "number" || (spec.kind !== "bytes" && spec.kind !== "duration")) return String(value);
  const units = Object.entries(UNITS[spec.kind]);
  const [unit, size] = units.find(([, size]) => value >= size && value % size === 0) ?? units.at(-1) ?? ["", 1];
  return `${value / size}${unit}`;
}

/** What is wrong with `value` for the option `spec`, in words that say what would be right; `null` when it is fine. */
export function faultOf(spec: OptionSpec, value: unknown): string | null {
  switch (spec.kind) {
    case "flag":
      return typeof value === "boolean" ? null : "must be true or false";
    case "text":
      return typeof value === "string" && value !== "" ? null : "must be a text that is not empty";
    case "path":
      return faultOfPrefix(value);
    case "origins":
      return faultOfOrigins(value);
    case "choice":
      return faultOfChoice(spec.choices ?? [], value);
    case "integer":
    case "bytes":
    case "duration":
      return faultOfNumber(spec, value);
  }
}

function faultOfChoice(choices: readonly string[], value: unknown): string | null {
  if (typeof value === "string" && choices.includes(value)) return null;
  return `must be ${choices.slice(0, -1).join(", ")} or ${choices.at(-1) ?? ""}`;
}

function faultOfNumber(spec: OptionSpec, value: unknown): string | null {
  const min = spec.min ?? 0;
  const max = spec.max ?? Number.MAX_SAFE_INTEGER;
  if (value === Infinity && spec.canBeOff === true) return null;
  const fits = typeof value === "number" && value >= min && value <= max;
  if (fits && (spec.kind === "duration" || Number.isInteger(value))) return null;
  const off = spec.canBeOff === true ? ", or off" : "";
  return `must be from ${formatValue(spec, min)} to ${formatValue(spec, max)}${off}`;
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
  if (value === "*") return null;
  if (typeof value === "string" && value.split(",").every((part) => origin.test(part))) return null;
  return "must be * or origins like https://example.com, separated by commas";
}
