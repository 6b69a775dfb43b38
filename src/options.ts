/**
 * The one table of options: what each is called in code, on the command line and in the environment, its default,
 * its bounds and its help text. The server takes the values; the command line parses them.
 */

/** How a value is written: `bytes` like `64MiB`, `duration` (kept in milliseconds) like `1.5s`. */
export type OptionKind = "text" | "integer" | "bytes" | "duration" | "choice" | "flag";

/** One row of the table. Bounds are inclusive, in the unit the value is kept in. */
export interface OptionSpec {
  readonly flag: string;
  readonly env: string;
  readonly kind: OptionKind;
  readonly default: string | number | boolean;
  readonly min?: number;
  readonly max?: number;
  readonly choices?: readonly string[];
  readonly placeholder?: string;
  readonly help: string;
}

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;
const SECOND = 1000;
const HOUR = 3600 * SECOND;

/** Every option, in the order in which `--help` shows them. */
export const OPTIONS = {
  host: { flag: "host", env: "STREAMDIR_HOST", kind: "text", default: "127.0.0.1", placeholder: "ADDRESS", help: "address to listen on" },
  port: { flag: "port", env: "STREAMDIR_PORT", kind: "integer", default: 4437, min: 0, max: 65535, help: "port to listen on; 0 picks a free one" },
  prefix: { flag: "prefix", env: "STREAMDIR_PREFIX", kind: "text", default: "/v1/stream/", placeholder: "PATH", help: "URL path in front of every stream's name; begins and ends with /" },
  fsync: { flag: "fsync", env: "STREAMDIR_FSYNC", kind: "choice", default: "always", choices: ["always", "no"], help: "always: a 2xx means on disk; no: the system decides when" },
  ttl: { flag: "ttl", env: "STREAMDIR_TTL", kind: "choice", default: "sliding", choices: ["sliding", "fixed"], help: "sliding: reads and appends restart a Stream-TTL; fixed: it counts from creation" },
  maxAppendBytes: { flag: "max-append-bytes", env: "STREAMDIR_MAX_APPEND_BYTES", kind: "bytes", default: 16 * MiB, min: 1, max: GiB, help: "largest request body; above it 413" },
  chunkBytes: { flag: "chunk-bytes", env: "STREAMDIR_CHUNK_BYTES", kind: "bytes", default: MiB, min: 1, max: 64 * MiB, help: "most bytes that one read answers; a JSON message longer than it is sent whole" },
  segmentBytes: { flag: "segment-bytes", env: "STREAMDIR_SEGMENT_BYTES", kind: "bytes", default: 64 * MiB, min: 4 * KiB, max: 64 * GiB, help: "a stream's segment file ends at about this size" },
  journalBytes: { flag: "journal-bytes", env: "STREAMDIR_JOURNAL_BYTES", kind: "bytes", default: 64 * MiB, min: 64 * KiB, max: 4 * GiB, help: "size of one journal file; a full one is checkpointed" },
  journalBypassBytes: { flag: "journal-bypass-bytes", env: "STREAMDIR_JOURNAL_BYPASS_BYTES", kind: "bytes", default: 256 * KiB, min: 4 * KiB, max: GiB, help: "an append of this size goes to its segment first, past the journal" },
  tailCacheBytes: { flag: "tail-cache-bytes", env: "STREAMDIR_TAIL_CACHE_BYTES", kind: "bytes", default: 64 * MiB, min: 64 * KiB, max: 64 * GiB, help: "memory for the newest bytes of all streams" },
  maxLoadedStreams: { flag: "max-loaded-streams", env: "STREAMDIR_MAX_LOADED_STREAMS", kind: "integer", default: 100_000, min: 1, max: 100_000_000, help: "streams kept in memory; idle ones beyond it are forgotten" },
  longPollTimeoutMs: { flag: "long-poll-timeout", env: "STREAMDIR_LONG_POLL_TIMEOUT", kind: "duration", default: 30 * SECOND, min: 1, max: HOUR, help: "how long a long-poll waits for data" },
  sseLifetimeMs: { flag: "sse-lifetime", env: "STREAMDIR_SSE_LIFETIME", kind: "duration", default: 60 * SECOND, min: 1, max: 24 * HOUR, help: "about how long one SSE connection lasts" },
  shutdownTimeoutMs: { flag: "shutdown-timeout", env: "STREAMDIR_SHUTDOWN_TIMEOUT", kind: "duration", default: 10 * SECOND, min: 0, max: HOUR, help: "how long a stop waits for requests in flight" },
  corsOrigin: { flag: "cors-origin", env: "STREAMDIR_CORS_ORIGIN", kind: "text", default: "*", placeholder: "ORIGIN", help: "origin that browsers may call from: *, or one or more separated by commas" },
  logLevel: { flag: "log-level", env: "STREAMDIR_LOG_LEVEL", kind: "choice", default: "info", choices: ["debug", "info", "warn", "error", "silent"], help: "least severe message to log" },
  logFormat: { flag: "log-format", env: "STREAMDIR_LOG_FORMAT", kind: "choice", default: "auto", choices: ["auto", "text", "json"], help: "auto is text on a terminal, json elsewhere" },
  readOnly: { flag: "read-only", env: "STREAMDIR_READ_ONLY", kind: "flag", default: false, help: "refuse PUT, POST and DELETE with 405" },
} as const satisfies Record<string, OptionSpec>;

type OptionName = keyof typeof OPTIONS;
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
  return Object.fromEntries(entries) as Settings; // fromEntries loses the names that OPTIONS has
}

/**
 * What is wrong with `value` for the option `spec`, in words that say what would be right; `null` when it is fine.
 */
export function faultOf(spec: OptionSpec, value: unknown): string | null {
  switch (spec.kind) {
    case "flag":
      return typeof value === "boolean" ? null : "must be true or false";
    case "text":
      return typeof value === "string" && value !== "" ? null : "must not be empty";
    case "choice":
      return spec.choices?.includes(String(value)) === true ? null : `must be ${spec.choices?.join(" or ") ?? ""}`;
    case "integer":
    case "bytes":
    case "duration":
      return faultOfNumber(spec, value);
  }
}

function faultOfNumber(spec: OptionSpec, value: unknown): string | null {
  const min = spec.min ?? 0;
  const max = spec.max ?? Number.MAX_SAFE_INTEGER;
  const fits = typeof value === "number" && Number.isFinite(value) && value >= min && value <= max;
  return fits && (spec.kind === "duration" || Number.isInteger(value)) ? null : `must be from ${min} to ${max}`;
}

/** What is wrong with a prefix, or `null`: it begins and ends with `/` and has only characters that a URL path has. */
export function faultOfPrefix(prefix: string): string | null {
  return /^\/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]+\/)*$/.test(prefix) ? null : "must begin and end with / and hold plain path characters, like /v1/stream/";
}
